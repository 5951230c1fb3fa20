"""The setting of scale to zero."""

import re
from collections.abc import Mapping

import attrs

from gateway.errors import SettingsError
from gateway.settings import Settings, setting

_LENGTH = re.compile(r"([1-9][0-9]{0,5})(m|h)")
_UNITS_S = {"m": 60.0, "h": 3_600.0}


@attrs.frozen(kw_only=True)
class IdleSettings:
    """The setting of scale to zero."""

    exit_when_idle: str = setting(
        "",
        "Time without use, in `m` or `h`, after which the process ends with code 0 if nothing is "
        "pending ([asleep while idle](scale-to-zero.md)). Only for hosts that start it again at "
        "the next connection, such as Fly.io. Empty: never.",
        example="10m",
    )

    def validate(self, settings: Settings) -> Mapping[str, bool]:
        """Refuse it on a machine without all roles: another one may stay awake and need it."""
        if self.exit_when_idle and settings.roles != Settings().roles:
            raise SettingsError(
                "GATEWAY_EXIT_WHEN_IDLE is set on a machine without all roles. No request starts a "
                "worker or signer that sleeps. Unset it, or unset GATEWAY_ROLE on all machines."
            )
        is_length = _LENGTH.fullmatch(self.exit_when_idle) is not None
        return {"exit_when_idle": not self.exit_when_idle or is_length}


SECTION = IdleSettings


def idle_s_of(settings: Settings) -> float | None:
    """Return the seconds without use after which the process ends; None for never."""
    text = settings.section("", IdleSettings).exit_when_idle
    match = _LENGTH.fullmatch(text)
    return int(match[1]) * _UNITS_S[match[2]] if match else None
