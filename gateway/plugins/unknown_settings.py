"""Settings that neither the gateway nor a plugin knows: mostly a mistyped name."""

import difflib
import os.path
from collections.abc import Collection, Iterator

import attrs
import structlog

from gateway.errors import SettingsError
from gateway.settings import Settings, variable

# Of one name to another. Lower, and what another plugin left behind would resemble ours:
# XAI_API_KEY is 0.82 like FAL_API_KEY.
_NEAR = 0.9
_SWAPPED = 2  # characters
# Fields that are filled by the loader, and a variable that it reads itself.
_NO_SETTINGS = {"plugin_values", "unknown_in_file"}
_READ_BY_LOADER = "config"
_log = structlog.get_logger()


def refuse_unclaimed(settings: Settings, known: Collection[str]) -> None:
    """Raise `SettingsError` for what nobody knows in the file, and for a mistyped variable.

    Other variables that begin like ours are left alone: Kubernetes sets such for a service
    that is called "gateway".
    """
    for name in settings.unknown_in_file:
        if name not in known:
            near = difflib.get_close_matches(name, _all(known), 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise SettingsError(f"The file has a setting {name}, which nobody knows.{hint}")
    for name, near_name in _mistyped(settings, known):
        raise SettingsError(
            f"{variable(name)} is no setting: did you mean {variable(near_name)}? "
            "Rename the variable, or remove it."
        )


def tell_of_unclaimed(settings: Settings, known: Collection[str]) -> None:
    """Warn of variables that nobody knows and that are nearly known; never of their values."""
    for name, near in _mistyped(settings, known):
        _log.warning("setting.unknown", name=variable(name), near=variable(near))


def _mistyped(settings: Settings, known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield each variable that resembles a setting, and that setting."""
    for name in settings.plugin_values:
        if name in known or name in settings.unknown_in_file or name == _READ_BY_LOADER:
            continue
        if near := _resembled(name, _all(known)):
            yield name, near


def _resembled(name: str, names: Collection[str]) -> str | None:
    slips = [other for other in names if _is_one_slip(name, other)]
    return next(iter(slips or difflib.get_close_matches(name, names, 1, cutoff=_NEAR)), None)


def _is_one_slip(name: str, other: str) -> bool:
    """Whether one character is missing, added or another, or two neighbours are swapped."""
    begin = len(os.path.commonprefix((name, other)))  # noqa: RUF071 - characters are meant
    name, other = name[begin:], other[begin:]
    end = len(os.path.commonprefix((name[::-1], other[::-1])))  # noqa: RUF071
    name, other = name[: len(name) - end], other[: len(other) - end]
    if len(name) == _SWAPPED:
        return name == other[::-1]
    return max(len(name), len(other)) == 1


def _all(known: Collection[str]) -> list[str]:
    ours = (name for name in attrs.fields_dict(Settings) if name not in _NO_SETTINGS)
    return [*known, *ours, _READ_BY_LOADER]
