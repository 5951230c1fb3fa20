"""The settings of the pages for people."""

import re
from collections.abc import Mapping
from pathlib import Path

import attrs

from gateway.settings import Settings, setting

_COLOR = re.compile(r"#[0-9a-fA-F]{6}")
# An address that is safe in an attribute and in a Content-Security-Policy.
_LINK = re.compile(r"https://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~/?#&=%+@!-]*)?")
_PATH = re.compile(r"(/[A-Za-z0-9._-]+)+")
_ORIGIN = re.compile(r"(https|wss)://[A-Za-z0-9.-]+(:[0-9]{1,5})?")
_LINKS = ("logo_url", "imprint_url", "terms_url")


@attrs.frozen(kw_only=True)
class ShopSettings:
    """Settings of the pages."""

    brand_color: str = setting(
        "",
        "Colour of buttons and links on the public pages, as six hexadecimal digits. If it is hard "
        "to read, buyers see the nearest readable tone, which `gateway check` names.",
        example="#0f766e",
        on_page=True,
    )
    logo_file: Path | None = setting(
        None,
        "Logo on the public pages and icon of their tab: a PNG, JPEG, WebP or SVG of up to 200 KB. "
        "Its content decides about the type, and an SVG with scripts or links is refused.",
        example="/data/logo.svg",
    )
    logo_url: str = setting(
        "",
        "Address (https) of the logo, instead of a file.",
        example="https://example.com/logo.svg",
        on_page=True,
    )
    imprint_url: str = setting(
        "",
        "Address (https) of the imprint, which the public pages link to.",
        example="https://example.com/imprint",
        on_page=True,
    )
    terms_url: str = setting(
        "",
        "Address (https) of the terms of sale, which the public pages link to.",
        example="https://example.com/terms",
        on_page=True,
    )
    wallet_script: str = setting(
        "",
        "Path of a script on this gateway, served by a plugin, that the pages of offers load: it "
        "announces a wallet by EIP-6963, for example by WalletConnect.",
        example="/walletconnect/wallet.js",
    )
    wallet_origins: tuple[str, ...] = setting(
        (),
        "Origins (https or wss), separated by commas, that this script may connect to.",
        example="wss://relay.example.com",
    )

    def validate(self, _: Settings) -> Mapping[str, bool]:
        """Return for each value whether it is right."""
        return {
            "brand_color": not self.brand_color or bool(_COLOR.fullmatch(self.brand_color)),
            **{name: _is_link(getattr(self, name)) for name in _LINKS},
            "wallet_script": not self.wallet_script or bool(_PATH.fullmatch(self.wallet_script)),
            "wallet_origins": all(map(_ORIGIN.fullmatch, self.wallet_origins)),
        }


SECTION = ShopSettings


def shop_settings_of(settings: Settings) -> ShopSettings:
    """Return the checked settings of the pages."""
    return settings.section("", ShopSettings)


def play_key_of(settings: Settings) -> str:
    """Return the key with play money; empty if money is real."""
    return settings.play_key


def _is_link(text: str) -> bool:
    """Whether this is empty or an https address that a page may hold."""
    return not text or bool(_LINK.fullmatch(text))
