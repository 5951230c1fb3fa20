"""A mistyped variable is told, because it leaves a setting at its default in silence."""

import structlog

from gateway.plugin_manager import PluginManager
from gateway.settings import load_settings


def test_a_mistyped_variable_is_told(monkeypatch):
    monkeypatch.setenv("GATEWAY_WALLET", "0x" + "b2" * 20)
    monkeypatch.setenv("GATEWAY_REQUIRE_PAYER_SIGNATUR", "true")
    monkeypatch.setenv("GATEWAY_SERVICE_PORT", "80")  # Kubernetes sets such for a service "gateway"
    with structlog.testing.capture_logs() as lines:
        PluginManager().catalog(load_settings())
    told = [line for line in lines if line["event"] == "setting.unknown"]
    assert [line["near"] for line in told] == ["GATEWAY_REQUIRE_PAYER_SIGNATURE"]
    assert "true" not in str(told)
