"""GATEWAY_MCP_ORIGINS and GATEWAY_LIMIT_MCP: origins as browsers send them, and a limit."""

import pytest

from gateway.errors import SettingsError
from gateway.settings import load_settings
from gateway_mcp.settings import McpSettings

WALLET = "0x" + "b2" * 20


def chosen(**values):
    return load_settings(wallet=WALLET, **values).section("", McpSettings)


@pytest.mark.parametrize(
    "origins", [(), ("*",), ("https://a.example", "http://localhost:6274")], ids=str
)
def test_origins_are_taken_as_browsers_send_them(origins):
    assert chosen(mcp_origins=origins).mcp_origins == origins


@pytest.mark.parametrize(
    "origin", ["a.example", "https://a.example/", "https://A.example", "https://", "", "null"]
)
def test_what_no_browser_sends_is_refused(origin):
    with pytest.raises(SettingsError, match="GATEWAY_MCP_ORIGINS is not right"):
        chosen(mcp_origins=("https://a.example", origin))


@pytest.mark.parametrize("limit", ["", "60", "0/60s"])
def test_a_limit_is_messages_and_seconds(limit):
    with pytest.raises(SettingsError, match="GATEWAY_LIMIT_MCP is not"):
        chosen(limit_mcp=limit)
