"""GATEWAY_SERVER=uvicorn: a sentence if it is not installed or its plugin is disabled."""

import gc
import json
from importlib.metadata import EntryPoint

import pytest
from click.testing import CliRunner

from gateway import installed
from gateway.cli import main
from gateway.concurrency.late_imports import hidden
from gateway.settings import Settings, load_settings
from gateway.web.server import hypercorn_server
from gateway.web.server.serve import run_of
from gateway_uvicorn import server as uvicorn_server

WALLET = "0x" + "b2" * 20


@pytest.fixture(autouse=True)
def wallet(monkeypatch, tmp_path):
    monkeypatch.setenv("GATEWAY_WALLET", WALLET)
    monkeypatch.setenv("GATEWAY_DATA_DIR", str(tmp_path))
    yield
    # `serve` switches the collector off for its imports.
    gc.enable()


def refusal_of(command: str) -> str:
    """Run a command that refuses the server, and return its sentence."""
    done = CliRunner().invoke(main, [command, *(["--json"] if command == "check" else [])])
    assert done.exit_code == 1
    return done.output if command == "serve" else json.loads(done.output)[0]["found"]


@pytest.mark.parametrize(
    ("server", "module"), [("hypercorn", hypercorn_server), ("uvicorn", uvicorn_server)]
)
def test_a_server_that_is_installed_is_taken(server, module):
    assert run_of(Settings(server=server)) is module.run


@pytest.mark.parametrize("package", ["uvicorn", "httptools"])
@pytest.mark.parametrize("command", ["serve", "check"])
def test_a_server_that_is_missing_is_one_sentence_with_the_way_out(monkeypatch, command, package):
    monkeypatch.setenv("GATEWAY_SERVER", "uvicorn")
    with hidden(package):
        output = refusal_of(command)
    assert f"GATEWAY_SERVER is uvicorn, but {package} cannot be found" in output
    assert "pip install 'generation-gateway[fast]'" in output


@pytest.mark.parametrize("name", ["gateway_uvicorn", "gateway-uvicorn"])
@pytest.mark.parametrize("command", ["serve", "check"])
def test_a_server_of_a_disabled_plugin_is_one_sentence_with_the_way_out(monkeypatch, command, name):
    monkeypatch.setenv("GATEWAY_PLUGINS_DISABLED", name)
    assert run_of(load_settings()) is hypercorn_server.run
    monkeypatch.setenv("GATEWAY_SERVER", "uvicorn")
    output = refusal_of(command)
    assert "GATEWAY_SERVER needs gateway_uvicorn, but GATEWAY_PLUGINS_DISABLED names it" in output
    assert "unset GATEWAY_SERVER" in output


def test_a_third_partys_server_is_taken_by_its_name(monkeypatch):
    entry = EntryPoint("acme", "gateway_testing.facts:queued", "gateway.servers")
    monkeypatch.setattr(installed, "entry_points", lambda _: [entry])
    assert load_settings(server="acme").server == "acme"
    assert installed.find_opener("gateway.servers", "acme") == entry.value
