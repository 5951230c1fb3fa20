"""Puts values of the page Settings into the settings, below file and environment."""

import re
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

import attrs

from gateway.errors import SettingsError
from gateway.settings.checks import check_settings
from gateway.settings.loader import check_plain
from gateway.settings.model import Settings
from gateway.settings.page import unseal
from gateway.settings.sections import read_section, variable

_OTHER_KEY = "another GATEWAY_SETTINGS_SECRET sealed it. Set that one, or set the value again"
_NO_KEY = "GATEWAY_SETTINGS_SECRET is not set, which seals it"
_VARIABLE = re.compile(r"GATEWAY_[A-Z0-9_]+")
_Made = TypeVar("_Made")


def read_sealed(settings: Settings, sealed: Mapping[str, str]) -> Settings:
    """Return the settings with the values that the page has sealed, by name.

    A value that cannot be read, or is not right, has no effect and is in `page_unread`.
    """
    values, unread = unseal_all(settings, sealed)
    base = attrs.evolve(settings, page_sealed=dict(sealed), page_unread=unread)
    try:
        return put_in(base, values)
    except SettingsError:
        return _put_each(base, values)


def _put_each(base: Settings, values: Mapping[str, str]) -> Settings:
    """Put in the values one by one, and leave out those that are refused."""
    found, taken, refused = base, dict[str, str](), dict[str, str]()
    for name, text in values.items():
        try:
            found = put_in(base, {**taken, name: text})
        except SettingsError as error:
            refused[name] = str(error)
        else:
            taken[name] = text
    return attrs.evolve(found, page_unread={**base.page_unread, **refused})


def unseal_all(
    settings: Settings, sealed: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the values by name, and why others cannot be read."""
    secret = str(settings.settings_secret)
    values: dict[str, str] = {}
    unread: dict[str, str] = {}
    for name, text in sealed.items():
        try:
            values[name] = unseal(secret, name, text)
        except ValueError:
            unread[name] = _OTHER_KEY if secret else _NO_KEY
    return values, unread


def put_in(settings: Settings, values: Mapping[str, str]) -> Settings:
    """Return the settings with these texts, each read as a variable of the environment would be.

    Names that file or environment set keep those values. Raises `SettingsError` for a wrong value
    of the gateway's own settings; `PluginManager.catalog` checks those of plugins.
    """
    given = {name: text for name, text in values.items() if name not in settings.sources}
    for name, text in given.items():
        check_plain(name, text)
    fields = attrs.fields_dict(Settings)
    own = {name: text for name, text in given.items() if name in fields}
    for name in own:
        if not fields[name].metadata.get("on_page"):
            raise SettingsError(f"{variable(name)} cannot be set on the page.")
    read = read_section(own, "", Settings)
    of_plugins = {name: text for name, text in given.items() if name not in fields}
    changed = settings.changed(**{name: getattr(read, name) for name in own}, **of_plugins)
    check_settings(changed, needs_wallet=False)
    return changed


def without_page(settings: Settings) -> Settings:
    """Return the settings as file and environment have them."""
    return _reset(settings, settings.page_names)


def _reset(settings: Settings, names: Collection[str]) -> Settings:
    fields = attrs.fields_dict(Settings)
    own = {name: fields[name].default for name in names if name in fields}
    rest = {n: v for n, v in settings.plugin_values.items() if n not in names}
    return attrs.evolve(settings, plugin_values=rest).changed(**own)


def leave_out(settings: Settings, names: Collection[str], problem: str) -> Settings:
    """Return the settings without these values of the page, because of a problem with them."""
    unread = {**dict.fromkeys(names, problem), **settings.page_unread}
    return attrs.evolve(_reset(settings, names), page_unread=unread)


def make_readable(settings: Settings, make: Callable[[Settings], _Made]) -> tuple[Settings, _Made]:
    """Return what `make` makes, and the settings, without the page's values that it refuses.

    Raises its `SettingsError` if no value of the page is the cause.
    """
    while True:
        try:
            return settings, make(settings)
        except SettingsError as error:
            if not settings.page_names:
                raise
            settings = leave_out(settings, _find_refused(settings, str(error), make), str(error))


def _find_refused(
    settings: Settings, problem: str, make: Callable[[Settings], object]
) -> Collection[str]:
    """Return the values that the problem names, else the one that causes it, else all."""
    told = set(_VARIABLE.findall(problem))
    if named := [name for name in settings.page_names if variable(name) in told]:
        return named
    for name in sorted(settings.page_names):
        try:
            make(leave_out(settings, [name], problem))
        except SettingsError:
            continue
        return [name]
    return settings.page_names


def find_unread(settings: Settings) -> dict[str, str]:
    """Return why values of the page have no effect, without those that file or environment set."""
    unread = settings.page_unread.items()
    return {name: problem for name, problem in unread if name not in settings.sources}


def is_locked(problem: str) -> bool:
    """Whether a value of the page has no effect because it cannot be unsealed."""
    return problem in (_OTHER_KEY, _NO_KEY)
