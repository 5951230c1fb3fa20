"""GATEWAY_SERVER: one of two servers, and a sentence if the chosen one is missing."""

import gc
import json

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.concurrency.late_imports import hidden
from gateway.errors import SettingsError
from gateway.settings import Settings, check_server, load_settings

WALLET = "0x" + "b2" * 20


@pytest.fixture(autouse=True)
def wallet(monkeypatch, tmp_path):
    monkeypatch.setenv("GATEWAY_WALLET", WALLET)
    monkeypatch.setenv("GATEWAY_DATA_DIR", str(tmp_path))
    yield
    # `serve` switches the collector off for its imports.
    gc.enable()


def test_hypercorn_is_the_default():
    assert load_settings().server == "hypercorn"


@pytest.mark.parametrize("value", ["gunicorn", "Uvicorn", ""])
def test_another_server_is_refused(monkeypatch, value):
    monkeypatch.setenv("GATEWAY_SERVER", value)
    with pytest.raises(SettingsError) as refusal:
        load_settings()
    assert str(refusal.value).startswith("GATEWAY_SERVER is not ")
    assert "`hypercorn`, or `uvicorn`" in str(refusal.value)


@pytest.mark.parametrize("server", ["hypercorn", "uvicorn"])
def test_a_server_that_is_installed_is_taken(server):
    check_server(Settings(server=server))


@pytest.mark.parametrize("package", ["uvicorn", "httptools"])
@pytest.mark.parametrize("command", ["serve", "check"])
def test_a_server_that_is_missing_is_one_sentence_with_the_way_out(monkeypatch, command, package):
    monkeypatch.setenv("GATEWAY_SERVER", "uvicorn")
    with hidden(package):
        done = CliRunner().invoke(main, [command, *(["--json"] if command == "check" else [])])
    assert done.exit_code == 1
    output = done.output if command == "serve" else json.loads(done.output)[0]["found"]
    assert f"GATEWAY_SERVER is uvicorn, but {package} cannot be found" in output
    assert "pip install 'generation-gateway[fast]'" in output
