"""The setting of webhooks."""

from collections.abc import Mapping

import attrs

from gateway.errors import SettingsError
from gateway.settings import Settings, is_local_only, setting


@attrs.frozen(kw_only=True)
class WebhookSettings:
    """Settings of webhooks."""

    webhooks: str = setting(
        "on",
        "Whether a buyer may set a `callbackUrl`: `on` (needs an https GATEWAY_BASE_URL, because "
        "the purchase's response contains a secret), `off`, or `local`, which sends to this "
        "machine only, also by http, as in `gateway demo`.",
    )

    def validate(self, settings: Settings) -> Mapping[str, bool]:
        """Refuse `local` on a gateway that others reach."""
        if self.webhooks == "local" and not is_local_only(settings):
            raise SettingsError(
                "GATEWAY_WEBHOOKS=local lets buyers send requests to programs of this machine, so "
                "GATEWAY_BASE_URL and GATEWAY_BIND must be of this machine, too, such as "
                "http://127.0.0.1:8080 and 127.0.0.1:8080. Elsewhere set GATEWAY_WEBHOOKS=on."
            )
        return {"webhooks": self.webhooks in ("on", "off", "local")}


SECTION = WebhookSettings


def mode_of(settings: Settings) -> str:
    """Return `on`, `off` or `local`; over http the secret would be read by others, so `off`."""
    mode = settings.section("", WebhookSettings).webhooks
    return mode if mode == "local" or settings.is_https else "off"
