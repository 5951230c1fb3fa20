"""The setting of the pages for people."""

from collections.abc import Mapping

import attrs

from gateway.settings import Settings, is_chain_local, is_key, is_local_only, setting


@attrs.frozen(kw_only=True)
class ShopSettings:
    """Settings of the pages."""

    play_key: str = setting(
        "",
        "Private key with play money, shown to all visitors, for `gateway demo`. Refused "
        "unless base_url, bind and rpc_urls are on this machine.",
        example="0x followed by 64 hexadecimal digits",
        shown=False,
    )

    def validate(self, settings: Settings) -> Mapping[str, bool]:
        """Accept a key only if gateway and chain are reached on this machine alone."""
        is_local = is_local_only(settings) and is_chain_local(settings)
        return {"play_key": not self.play_key or (is_key(self.play_key) and is_local)}


SECTION = ShopSettings


def play_key_of(settings: Settings) -> str:
    """Return the key with play money; empty if money is real."""
    return settings.section("", ShopSettings).play_key
