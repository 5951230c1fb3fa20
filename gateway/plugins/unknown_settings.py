"""Finds settings that neither the gateway nor a plugin defines, mostly typos."""

import difflib
import os.path
import re
from collections.abc import Collection, Iterable, Iterator

import attrs
import structlog

from gateway.errors import SettingsError
from gateway.plugins.installed import find_section
from gateway.plugins.loaded import LoadedPlugin
from gateway.settings import SectionOffer, Settings, names_of, variable
from gateway.settings.page import FILLED

# Required similarity of two names. A lower value would take another plugin's leftover setting for a
# typo: XAI_API_KEY and FAL_API_KEY have 0.82.
_NEAR = 0.9
# Length of two swapped neighbours.
_SWAPPED_CHARS = 2
# Fields of `Settings` that the loader fills; they are no settings.
_LOADER_FIELDS = {"plugin_values", "unknown_in_file", *FILLED}
# The loader reads this variable itself.
_LOADER_VARIABLE = "config"
# Such as GATEWAY_SERVICE_HOST and GATEWAY_WEB_PORT_8080_TCP_ADDR.
# GATEWAY_INTERFACE is set by CGI servers.
_OF_SERVICE = re.compile(
    r"(.+_)?(service_(host|port)(_.+)?|port_\d+_(tcp|udp|sctp)(_.+)?)|interface"
)
_log = structlog.get_logger()


def refuse_unknown_settings(settings: Settings, known: Collection[str]) -> None:
    """Raise `SettingsError` for an unknown setting in the file, and for a mistyped variable.

    `known` are the names of the plugins' settings. Other variables with the prefix GATEWAY_ are
    ignored: Kubernetes sets such variables for a service named "gateway".
    """
    for name in settings.unknown_in_file:
        if name not in known:
            near = difflib.get_close_matches(name, _all_names(known), 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise SettingsError(f"The file has a setting {name}, which does not exist.{hint}")
    for name, near_name in _find_mistyped(settings, known):
        raise SettingsError(
            f"{variable(name)} is no setting: did you mean {variable(near_name)}? "
            "Rename the variable, or remove it."
        )


def warn_of_unknown_settings(settings: Settings, known: Collection[str]) -> None:
    """Log the names of mistyped variables, never their values."""
    for name, near in _find_mistyped(settings, known):
        _log.warning("setting.unknown", name=variable(name), near=variable(near))


def find_ignored(settings: Settings, known: Collection[str]) -> list[str]:
    """Return the variables that nothing reads, except those that Kubernetes and Docker set.

    `known` are the names of the settings of plugins that are on.
    """
    return sorted(
        variable(name)
        for name, value in settings.plugin_values.items()
        if name not in known and name != _LOADER_VARIABLE and not _is_of_a_service(name, value)
    )


def _is_of_a_service(name: str, value: object) -> bool:
    """Whether an orchestrator sets such a variable for a service named "gateway"."""
    is_address = name == "port" and "://" in str(value)
    return is_address or _OF_SERVICE.fullmatch(name) is not None


def _find_mistyped(settings: Settings, known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield (unknown variable, similar setting)."""
    for name in settings.plugin_values:
        if name in known or name in settings.unknown_in_file or name == _LOADER_VARIABLE:
            continue
        if near := _nearest_name(name, _all_names(known)):
            yield name, near


def _nearest_name(name: str, names: Collection[str]) -> str | None:
    typos = [other for other in names if _is_typo(name, other)]
    return next(iter(typos or difflib.get_close_matches(name, names, 1, cutoff=_NEAR)), None)


def _is_typo(name: str, other: str) -> bool:
    """Whether one character is missing, added or wrong, or two neighbours are swapped."""
    begin = len(os.path.commonprefix((name, other)))  # noqa: RUF071 - characters are meant
    name, other = name[begin:], other[begin:]
    end = len(os.path.commonprefix((name[::-1], other[::-1])))  # noqa: RUF071
    name, other = name[: len(name) - end], other[: len(other) - end]
    if len(name) == _SWAPPED_CHARS:
        return name == other[::-1]
    return max(len(name), len(other)) == 1


def _all_names(known: Collection[str]) -> list[str]:
    ours = (name for name in attrs.fields_dict(Settings) if name not in _LOADER_FIELDS)
    return [*known, *ours, _LOADER_VARIABLE]


def warn_of_disabled(plugins: Iterable[LoadedPlugin], settings: Settings) -> set[str]:
    """Log values set for disabled plugins; return the names of all their settings."""
    known: set[str] = set()
    for plugin in plugins:
        kind = find_section(plugin.name, disabled=True) if plugin.is_disabled else None
        if kind is None:
            continue
        names = names_of("", kind).keys()
        known |= names
        if given := sorted(map(variable, names & settings.plugin_values.keys())):
            _log.warning("setting.of_disabled_plugin", plugin=plugin.name, names=given)
    return known


def blame_settings(
    error: Exception, sections: Iterable[SectionOffer], settings: Settings
) -> Exception:
    """Return the error with those of a plugin's settings that are set: one may be its cause."""
    fields = {name: field for one in sections for name, field in one.fields.items()}
    given = sorted(one for one in fields.keys() & settings.plugin_values if fields[one].repr)
    names = ", ".join(map(variable, given))
    return SettingsError(f"{error}. Check {names}.") if given else error
