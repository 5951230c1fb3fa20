"""Puts values of the page Settings into the settings, below file and environment."""

from collections.abc import Mapping

import attrs

from gateway.errors import SettingsError
from gateway.settings.checks import check_settings
from gateway.settings.loader import check_plain
from gateway.settings.model import Settings
from gateway.settings.page import unseal
from gateway.settings.sections import read_section, variable

_OTHER_KEY = "another GATEWAY_SETTINGS_SECRET sealed it. Set that one, or set the value again"
_NO_KEY = "GATEWAY_SETTINGS_SECRET is not set, which seals it"


def read_sealed(settings: Settings, sealed: Mapping[str, str]) -> Settings:
    """Return the settings with the values that the page has sealed, by name.

    A value that cannot be read, or is not right, has no effect and is in `page_unread`.
    """
    values, unread = unseal_all(settings, sealed)
    base = attrs.evolve(settings, page_sealed=dict(sealed), page_unread=unread)
    try:
        return put_in(base, values)
    except SettingsError as error:
        return leave_out(base, str(error))


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
    fields = attrs.fields_dict(Settings)
    own = {name: fields[name].default for name in settings.page_names if name in fields}
    rest = {n: v for n, v in settings.plugin_values.items() if n not in settings.page_names}
    return attrs.evolve(settings, plugin_values=rest).changed(**own)


def leave_out(settings: Settings, problem: str) -> Settings:
    """Return the settings without any value of the page, because of a problem with one of them."""
    plain = without_page(settings)
    unread = dict.fromkeys(settings.page_sealed, problem) | dict(settings.page_unread)
    return attrs.evolve(plain, page_unread=unread)
