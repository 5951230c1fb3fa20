"""A mistyped variable is refused: it would silently leave a setting at its default."""

import pytest
import structlog

from gateway.errors import SettingsError
from gateway.plugins.manager import PluginManager
from gateway.plugins.unknown_settings import warn_of_unknown_settings
from gateway.settings import load_settings
from gateway.settings.model import Settings


@pytest.fixture(autouse=True)
def wallet(monkeypatch):
    monkeypatch.setenv("GATEWAY_WALLET", "0x" + "b2" * 20)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("WORKRES", "WORKERS"),
        ("WORKER", "WORKERS"),
        ("NMAE", "NAME"),
        ("LIMIT_X42", "LIMIT_X402"),
        ("REQUIRE_PAYER_SIGNATUR", "REQUIRE_PAYER_SIGNATURE"),
        ("REQUIRE_PAYERS_SIGNATURES", "REQUIRE_PAYER_SIGNATURE"),
        ("OPENAI_APIKEY", "OPENAI_API_KEY"),
        ("CONFGI", "CONFIG"),
    ],
)
def test_a_variable_that_resembles_a_setting_is_refused(monkeypatch, typed, meant):
    monkeypatch.setenv(f"GATEWAY_{typed}", "MARKER")
    with pytest.raises(SettingsError) as refusal:
        PluginManager().catalog(load_settings())
    assert f"GATEWAY_{typed} is no setting: did you mean GATEWAY_{meant}?" in str(refusal.value)
    assert "MARKER" not in str(refusal.value)


@pytest.mark.parametrize(
    "name",
    # Kubernetes and Docker set the first four for a service called "gateway", a CGI server sets the
    # fifth, and the last ones belong to uninstalled plugins.
    [
        *("SERVICE_HOST", "SERVICE_PORT", "PORT", "PORT_8080_TCP_ADDR", "INTERFACE"),
        *("XAI_API_KEY", "ACME_API_KEY"),
    ],
)
def test_a_variable_that_others_set_is_left_alone(monkeypatch, name):
    monkeypatch.setenv(f"GATEWAY_{name}", "80")
    with structlog.testing.capture_logs() as lines:
        PluginManager().catalog(load_settings())
    assert not [line for line in lines if line["event"] == "setting.unknown"]


def test_what_may_be_of_a_plugin_that_was_left_out_is_only_told():
    settings = Settings(plugin_values={"workres": "true"})
    with structlog.testing.capture_logs() as lines:
        warn_of_unknown_settings(settings, ())
    (warning,) = lines
    assert (warning["event"], warning["near"]) == ("setting.unknown", "GATEWAY_WORKERS")
    assert "true" not in str(warning)
