"""Shared by all proofs: child programs that react to Ctrl-C, and a key that pays for gas."""

import re
import signal
from collections.abc import Iterator

import pytest

# Tests that share something expensive: a gateway on each server, a browser, a wheel, a demo, a
# parser. `--dist loadgroup` gives those of one folder and server to the same process; of the kit,
# those of one class; of OCR and the log page, those of one file. The mark `xdist_group` is not
# used, because pytest-xdist 3.8 loses it with pytest 9.2.
_FILES = ("tests/proof/providers/test_documents_ocr", "tests/proof/documentation/test_log_events")
_SHARING = re.compile(
    r"tests/(?:plugins/gateway_demo/proof/test_demo|proof/(?:distribution/test_(?:wheel|plugin_docs)"
    r"|fuzz/test_fuzz_c|pages/test_"
    r"|process/test_(?:event_streams|fast_path|http|payment)|proxies/))"
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Distribute tests one by one, except those that share something."""
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
    if nodeid.startswith(_FILES):
        return nodeid.partition("::")[0]
    if not _SHARING.match(nodeid):
        return nodeid
    server = re.search(r"\[.*?(hypercorn|uvicorn)", nodeid)
    return f"{nodeid.split('/')[2]} {server[1] if server else ''}"


@pytest.fixture(scope="session", autouse=True)
def _programs_hear_ctrl_c() -> Iterator[None]:
    """Reset SIGINT, which a shell script lets its background programs ignore.

    Programs inherit an ignored signal, but no handler.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session", autouse=True)
def _forking_ends() -> Iterator[None]:
    yield
    from tests.proof.process.forked import end_parent

    end_parent()


@pytest.fixture
def key(chain) -> str:
    """The settlement key of a gateway in a process, with ETH for gas."""
    from eth_account import Account

    account = Account.create()
    chain.fund(account.address, eth_wei=10**18, usdc_units=0)
    return account.key.hex()
