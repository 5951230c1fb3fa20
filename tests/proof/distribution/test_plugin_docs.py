"""The commands in docs/plugins.md work, and every hook and public name has a docstring."""

import contextlib
import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import time

import pytest
from PIL import Image

import gateway
import gateway.testing
import gateway.vendors
from gateway.errors import ProviderError
from gateway.plugins import hookspecs
from tests.proof.distribution.clean_place import ROOT, CleanPlace

DOCS = ROOT / "docs"
PAGE = (DOCS / "plugins.md").read_text("utf-8")
ACME = DOCS / "examples" / "gateway-acme"
OTEL = ACME.parent / "gateway-otel"
VOUCHERS = ACME.parent / "gateway-vouchers"
MELODY = ACME.parent / "gateway-melody"
REVIEWS = ACME.parent / "gateway-reviews" / "src" / "gateway_reviews"
EXAMPLES = (
    ACME / "src" / "gateway_acme.py",
    ACME / "tests" / "test_acme.py",
    OTEL / "src" / "gateway_otel.py",
    VOUCHERS / "src" / "gateway_vouchers" / "__init__.py",
    VOUCHERS / "tests" / "test_vouchers.py",
    MELODY / "src" / "gateway_melody" / "__init__.py",
    REVIEWS / "__init__.py",
    REVIEWS / "routes.py",
    ROOT / "tests" / "proof" / "distribution" / "pager_plugin.py",
    ROOT / "tests" / "proof" / "distribution" / "test_plugin_snippets.py",
    ROOT / "tests" / "unit" / "cli" / "test_plugin_commands.py",
    ROOT / "tests" / "plugins" / "gateway_media" / "app" / "test_videos_sold.py",
)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PIP = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0"}
PATIENCE_S = 60


def reference():
    path = DOCS / "plugin_reference.py"
    if str(DOCS) not in sys.path:
        sys.path.append(str(DOCS))  # as where docs/generate.py runs
    spec = importlib.util.spec_from_file_location("plugin_reference", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def blocks(language):
    return [text for found, text in BLOCK.findall(PAGE) if found == language]


def free_ports(count):
    with_each = [socket.socket() for _ in range(count)]
    for one in with_each:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in with_each]
    for one in with_each:
        one.close()
    return ports


def script():
    """Return the page's commands as one script, on free ports."""
    (port,) = free_ports(1)
    text = "\n".join(blocks("sh")).replace("8402", str(port))
    # A person reads on while a server starts, and has two terminals.
    serve = "gateway plugins dev"
    assert text.count(f"{serve}\n") == 1
    ready = f"{serve} --port {port} > gateway.log &\npython wait.py {port}\n"
    return "set -eu\n" + text.replace(f"{serve}\n", ready)


WAIT = f"""
import socket, sys, time
end = time.monotonic() + {PATIENCE_S}
while time.monotonic() < end:
    try:
        socket.create_connection(("127.0.0.1", int(sys.argv[1]))).close()
        sys.exit(0)
    except OSError:
        time.sleep(0.05)
sys.exit("nobody listens")
"""


@pytest.fixture(scope="module")
def followed(wheel, tmp_path_factory):
    """Follow the page in an empty folder of a clean environment."""
    home = tmp_path_factory.mktemp("page")
    place = CleanPlace.made(home / "clean", wheel)
    for name, module in (("pip", "pip"), ("pytest", "pytest -p no:cacheprovider")):
        shim = place.python.parent / name
        shim.write_text(f'#!/bin/sh\nexec "{place.python}" -m {module} "$@"\n')
        shim.chmod(0o755)
    site = next((home / "clean" / "venv" / "lib").glob("python*")) / "site-packages"
    (site / "wait.py").write_text(WAIT)
    (place.work / "generation-gateway").symlink_to(ROOT)
    text = script().replace("python wait.py", "python -m wait")
    printed = home / "printed"
    with printed.open("w") as output:
        process = subprocess.Popen(
            ["bash", "-c", text],
            cwd=place.work,
            env=place.environment(**PIP),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:  # it ends; the servers that it has begun go on
        yield place.work / "gateway-acme", process.wait(5 * PATIENCE_S), printed.read_text()
    finally:
        stop(process)


def stop(process):
    """Stop the page's servers, which are all in the script's own session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        time.sleep(1)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.full
def test_the_page_goes_from_an_empty_folder_to_a_sold_picture(followed):
    folder, code, output = followed
    log = folder / "gateway.log"
    assert code == 0, output + (log.read_text() if log.exists() else "")
    with Image.open(folder / "bought.png") as picture:
        assert (picture.format, picture.size) == ("PNG", (768, 768))
    assert re.search(r"transaction +0x[0-9a-f]{64}", output)


@pytest.mark.full
def test_what_the_page_shows_on_the_way_is_true(followed):
    folder, _, output = followed
    assert "toy vendor at http" in (folder / "gateway.log").read_text()
    assert int(re.search(r"(\d+) passed", output)[1]) > 20
    assert "b'# A title'" in output  # the sandbox
    assert [path.suffix for path in sorted((folder / "dist").iterdir())] == [".whl", ".gz"]
    assert len((folder / "src" / "gateway_acme.py").read_text().splitlines()) < 120
    named = re.findall(r"^- `([\w./]+\.(?:py|toml))`:", PAGE, re.MULTILINE)
    assert len(named) == 4
    for name in named:
        assert (folder / name).exists()


@pytest.mark.parametrize("snippet", blocks("python"), ids=lambda text: text.split("\n")[0][:40])
def test_every_other_snippet_stands_in_the_example_that_is_tested(snippet):
    text = "\n".join(path.read_text("utf-8") for path in EXAMPLES)
    code = [line.strip() for line in text.splitlines() if line.strip()]
    wanted = [line.strip() for line in snippet.splitlines() if line.strip()]
    places = [at for at, line in enumerate(code) if line == wanted[0]]
    assert any(code[at : at + len(wanted)] == wanted for at in places), snippet


def test_the_page_has_no_snippet_that_nobody_tests():
    assert {language for language, _ in BLOCK.findall(PAGE)} == {"sh", "python"}
    assert PAGE.count("\n```") == 2 * len(BLOCK.findall(PAGE))


# -- the reference


def test_every_hook_and_every_public_name_is_in_the_reference():
    page = reference().page()
    exported = (*gateway.__all__, *gateway.vendors.__all__, *gateway.testing.__all__)
    for name in (*reference().hooks(), *exported):
        if name not in ("hookimpl", "__version__"):
            entry = rf"^### {name}$|^- `(async )?{name}[`(]|`{name}`[,.]"
            assert re.search(entry, page, re.MULTILINE), name


def test_the_types_and_limits_that_an_author_looks_for_are_in_the_reference():
    page = reference().page()
    for name in ("Files", "Log", "Network"):
        assert f"### {name}\n" in page
    for row in (
        "- a buyer's file: 7.5 MB; its name 255 characters",
        "- outputs of one result: 16",
        "- attempts at a task: 4",
        "- `health`: 15 s",
    ):
        assert f"\n{row}\n" in page


def test_a_hook_without_a_docstring_is_found(monkeypatch):
    monkeypatch.setattr(hookspecs.register_endpoints, "__doc__", None)
    module = reference()
    with pytest.raises(module.Undocumented, match="register_endpoints"):
        module.page()


def test_a_public_name_without_a_docstring_is_found(monkeypatch):
    class Bare:
        pass

    monkeypatch.setattr(gateway, "__all__", [*gateway.__all__, "Bare"])
    monkeypatch.setattr(gateway, "Bare", Bare, raising=False)
    module = reference()
    with pytest.raises(module.Undocumented, match="Bare"):
        module.page()


def test_every_error_a_provider_may_raise_is_public():
    assert reference().undocumented() == []


def test_every_error_of_providers_has_its_row_on_the_page():
    public = {name: getattr(gateway, name) for name in gateway.__all__}
    kinds = {name: one for name, one in public.items() if isinstance(one, type)}
    providers = [name for name, one in kinds.items() if issubclass(one, ProviderError)]
    assert len(providers) > 7
    for name in providers:
        assert re.search(rf"^\| `{name}[`(]", PAGE, re.MULTILINE), name
