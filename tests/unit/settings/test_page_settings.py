"""The settings of the pages cannot break out of a page, a stylesheet or a header."""

import pytest

from gateway import Settings
from gateway.errors import SettingsError
from gateway.settings import check_settings
from gateway_shop.settings import shop_settings_of

LOCAL = ("http://127.0.0.1:8545",)
RIGHT = Settings(wallet="0x" + "11" * 20, rpc_urls=LOCAL)
KEY = "0x" + "11" * 32


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("brand_color", "red"),
        ("brand_color", "#fff"),
        ("brand_color", "#0f766e;}body{display:none"),
        ("logo_url", "http://example.com/logo.svg"),
        ("logo_url", "https://example.com/a; script-src *"),
        ("logo_url", "data:image/png;base64,AAAA"),
        ("imprint_url", "javascript:alert(1)"),
        ("terms_url", 'https://example.com/"onclick="x'),
        ("terms_url", "https://"),
        ("wallet_script", "//evil.example.com/wallet.js"),
        ("wallet_script", "https://cdn.example.com/wallet.js"),
        ("wallet_script", '/wallet.js"onload="x'),
        ("wallet_origins", ("wss://relay.example.com; script-src *",)),
        ("wallet_origins", ("*",)),
        ("wallet_origins", ("https://relay.example.com/path",)),
    ],
)
def test_a_wrong_value_stops_the_start_and_is_named(name, value):
    with pytest.raises(SettingsError, match=f"GATEWAY_{name.upper()} is not right"):
        shop_settings_of(RIGHT.changed(**{name: value}))


def test_right_values_pass():
    shop_settings_of(
        RIGHT.changed(
            brand_color="#0F766e",
            logo_url="https://cdn.example.com:8443/a/logo.svg?v=2",
            imprint_url="https://example.com/imprint",
            terms_url="https://example.com",
            wallet_script="/walletconnect/wallet.js",
            wallet_origins=("wss://relay.example.com", "https://rpc.example.com:8545"),
        )
    )
    check_settings(RIGHT.changed(play_key=KEY))


def test_a_play_key_is_a_key():
    with pytest.raises(SettingsError, match="GATEWAY_PLAY_KEY is not right"):
        check_settings(RIGHT.changed(play_key="0x12"))


@pytest.mark.parametrize(
    "public",
    [
        {"base_url": "https://gateway.example.com"},
        {"rpc_urls": (*LOCAL, "https://rpc.example.com")},
        {"bind": "0.0.0.0:8080"},
        {"bind": "[::]:8080"},
        {"bind": "192.0.2.7:8080"},
    ],
)
def test_a_play_key_is_refused_where_others_reach_gateway_or_chain(public):
    with pytest.raises(SettingsError, match="GATEWAY_PLAY_KEY is not right"):
        check_settings(RIGHT.changed(play_key=KEY, **public))
