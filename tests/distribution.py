"""Which tests of a run on several processes stay together: `--dist loadgroup`.

Tests of one file do, except proofs, which are long. Of these, tests that share something expensive
do: a gateway on each server, a browser, a wheel, a demo, a parser, pruned packages. They are those
of one folder and server; of the kit, those of one class; of OCR and the log page, those of one
file. The mark `xdist_group` is not used, because pytest-xdist 3.8 loses it with pytest 9.2.
"""

import re

import pytest

_FILES = ("tests/proof/providers/test_documents_ocr", "tests/proof/documentation/test_log_events")
_SHARING = re.compile(
    r"tests/(?:plugins/gateway_demo/proof/test_demo|proof/(?:distribution/test_(?:wheel|plugin_docs)"
    r"|fuzz/test_fuzz_c|image/test_prune\.py::test_(?:what|it|each)|pages/test_"
    r"|process/test_(?:event_streams|fast_path|http|payment)|proxies/))"
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Return the scheduler of groups for `loadgroup`; None leaves the choice to pytest-xdist."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Scheduler(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return Scheduler(config, log)


def group_of(nodeid: str) -> str:
    """Return the key that tests of one process have in common."""
    if nodeid.startswith("tests/proof/kit/"):
        return nodeid.partition("::test_")[0]
    if "/proof/" not in nodeid or nodeid.startswith(_FILES):
        return nodeid.partition("::")[0]
    if not _SHARING.match(nodeid):
        return nodeid
    server = re.search(r"\[.*?(hypercorn|uvicorn)", nodeid)
    return f"{nodeid.split('/')[2]} {server[1] if server else ''}"
