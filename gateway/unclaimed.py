"""Settings that neither the gateway nor a plugin knows: mostly a mistyped name."""

import difflib
from collections.abc import Collection

import attrs
import structlog

from gateway.errors import SettingsError
from gateway.settings import Settings, variable

_NEAR = 0.9  # of one variable to another: the system sets others that begin like ours
_log = structlog.get_logger()


def refuse_unclaimed(settings: Settings, known: Collection[str]) -> None:
    """Raise `SettingsError` for what stands in the file and belongs to nobody."""
    for name in settings.unknown_in_file:
        if name not in known:
            near = difflib.get_close_matches(name, _all(known), 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise SettingsError(f"The file has a setting {name}, which nobody knows.{hint}")


def tell_of_unclaimed(settings: Settings, known: Collection[str]) -> None:
    """Warn of variables that nobody knows and that are nearly known; never of their values."""
    for name in settings.plugin_values:
        near = difflib.get_close_matches(name, _all(known), 1, cutoff=_NEAR)
        if name not in known and name not in settings.unknown_in_file and near:
            _log.warning("setting.unknown", name=variable(name), near=variable(near[0]))


def _all(known: Collection[str]) -> list[str]:
    return [*known, *attrs.fields_dict(Settings)]
