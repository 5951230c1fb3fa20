"""Commands in a folder without settings: what works without a wallet, and the way on."""

import json
import os

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.errors import SettingsError
from gateway.settings import load_settings


@pytest.fixture
def empty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("GATEWAY_")]:
        monkeypatch.delenv(name)
    return tmp_path


@pytest.mark.parametrize("command", ["serve", "tasks", "migrate", "books"])
def test_a_command_without_any_setting_names_three_ways_on(empty, command):
    result = CliRunner().invoke(main, [command])
    assert result.exit_code == 1
    for way in ("GATEWAY_WALLET", "gateway demo", "gateway serve --play", "docs/go-live.md"):
        assert way in result.output
    assert list(empty.iterdir()) == []


def test_with_some_settings_the_missing_one_is_named(empty, monkeypatch):
    (empty / "gateway.toml").write_text('name = "Mine"\n')
    with pytest.raises(SettingsError, match=r"GATEWAY_WALLET is not set\. Address that"):
        load_settings()
    monkeypatch.setenv("GATEWAY_SANDBOX", "true")
    (empty / "gateway.toml").unlink()
    with pytest.raises(SettingsError, match=r"GATEWAY_WALLET is not set\. Address that"):
        load_settings()


def test_plugins_are_listed_without_a_wallet(empty, monkeypatch):
    result = CliRunner().invoke(main, ["plugins", "--no-health", "--json"])
    assert result.exit_code == 0, result.output
    assert "gateway_documents" in {row["plugin"] for row in json.loads(result.output)}
    assert list(empty.iterdir()) == []
    monkeypatch.setenv("GATEWAY_WALLET", "0x12")
    wrong = CliRunner().invoke(main, ["plugins", "--no-health"])
    assert (wrong.exit_code, "GATEWAY_WALLET is not right" in wrong.output) == (1, True)
