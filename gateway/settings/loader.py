"""Reads the settings: `gateway.toml` (or the file `GATEWAY_CONFIG` names), then the environment."""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from gateway.errors import SettingsError
from gateway.settings.checks import check_settings
from gateway.settings.model import Settings
from gateway.settings.page import FILLED, of_command
from gateway.settings.sections import read_section, variable

# Fields that this module fills; the operator cannot set them by name.
_FILLED_HERE = {"plugin_values", "unknown_in_file", *FILLED}
# A quoted value, also with a comment behind it.
_QUOTED = re.compile("""(["'`]).*\\1(\\s+#.*)?|\u201c.*\u201d|\u2018.*\u2019|«.*»""")
# Control characters, the separators of lines and paragraphs, and a byte order mark.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
_LINE_END = re.compile(r"[\r\n\t]")
# Of our own settings, a PEM may have several lines. Those of plugins may, too.
_OF_LINES = ("facilitator_key_secret",)
_NO_SETTINGS = (
    "GATEWAY_WALLET is not set, and nothing else is: there is no gateway.toml in this folder, and "
    "no variable begins with GATEWAY_. To see a gateway sell, run `gateway demo`; to rehearse with "
    "play money, `gateway serve --play`. docs/go-live.md leads from there to real money."
)
_OWN_NAMES = {field.name for field in attrs.fields(Settings)} - _FILLED_HERE


def load_settings(*, needs_wallet: bool = True, **overrides: Any) -> Settings:
    """Read the settings from file and environment; `overrides` win over both.

    Without `needs_wallet`, the wallet may be missing: for commands that take no money. Raises
    `SettingsError` with one sentence for the first mistake.
    """
    file = _find_file()
    written, environment = _read_file(file), _read_environment()
    if needs_wallet and not (written or environment or overrides):
        raise SettingsError(_NO_SETTINGS)
    for name, value in (written | environment).items():
        check_plain(name, value)
    loaded = _load(written | environment)
    in_file = _plugin_values(written)
    changes: dict[str, Any] = {
        "base_url": loaded.base_url.rstrip("/"),
        "plugin_values": in_file | _plugin_values(environment),
        "unknown_in_file": tuple(in_file),
        "sources": dict.fromkeys(written, file.name)
        | dict.fromkeys(environment, "environment")
        | of_command(overrides),
    }
    settings = loaded.changed(**changes).changed(**overrides)
    check_settings(settings, needs_wallet=needs_wallet)
    return settings


def read_disabled_plugins() -> list[str]:
    """Return `plugins_disabled` alone: commands that need no settings have to know it.

    Raises `SettingsError` if the file cannot be read.
    """
    found = (_read_file(_find_file()) | _read_environment()).get("plugins_disabled", "")
    names = found if isinstance(found, list) else str(found).split(",")
    return [str(name) for name in names]


def _find_file() -> Path:
    named = os.environ.get("GATEWAY_CONFIG")
    if named and not Path(named).is_file():
        raise SettingsError(
            f"GATEWAY_CONFIG names {named}, but there is no such file. Write the file, or unset "
            "the variable."
        )
    return Path(named or "gateway.toml")


def _read_file(file: Path) -> dict[str, Any]:
    """Return the settings in the file; none if there is no file.

    Editors of Windows begin a file with a byte order mark.
    """
    try:
        return tomllib.loads(file.read_text("utf-8-sig"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SettingsError(f"{file} cannot be read: {error}") from None


def check_plain(name: str, value: Any) -> None:
    """Raise `SettingsError` for quotes around a value, and for control characters in it.

    Docker's `--env-file` keeps quotes and what follows them, and a file from Windows leaves a
    carriage return.
    """
    if isinstance(value, list):
        for each in value:
            check_plain(name, each)
    if not isinstance(value, str):
        return
    if _QUOTED.fullmatch(value.strip()):
        raise SettingsError(f"{variable(name)} has quotes around its value. Remove the quotes.")
    if "\n" in value.strip() and (name in _OF_LINES or name not in _OWN_NAMES):
        value = _LINE_END.sub(" ", value)
    if _CONTROL.search(value):
        raise SettingsError(
            f"{variable(name)} holds a line end or another control character. Remove it; a file "
            "that was written on Windows has one at the end of each line."
        )


def _load(values: Mapping[str, Any]) -> Settings:
    """Read the gateway's own settings; raises `SettingsError` for a value of the wrong kind."""
    own = {name: value for name, value in values.items() if name in _OWN_NAMES}
    return read_section(own, "", Settings)


def _plugin_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are no settings of the gateway itself."""
    return {name: value for name, value in values.items() if name not in _OWN_NAMES}


def _read_environment() -> dict[str, str]:
    """Return all variables of the gateway by their names in the file."""
    prefix = "GATEWAY_"
    return {
        name.removeprefix(prefix).lower(): value
        for name, value in os.environ.items()
        if name.startswith(prefix)
    }
