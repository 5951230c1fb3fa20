"""Reads the settings: `gateway.toml` (or the file `GATEWAY_CONFIG` names), then the environment."""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import typed_settings as ts
from typed_settings.converters import TSConverter
from typed_settings.exceptions import TsError

from gateway.errors import SettingsError
from gateway.settings.checks import check_settings, hint
from gateway.settings.model import Settings
from gateway.settings.sections import variable

_READ_HERE = {"plugin_values", "unknown_in_file"}
_OURS = {field.name for field in attrs.fields(Settings)} - _READ_HERE


def load_settings(**overrides: Any) -> Settings:
    """Read the settings from file and environment; `overrides` win over both.

    Raises `SettingsError` with one sentence for the first mistake.
    """
    named = os.environ.get("GATEWAY_CONFIG")
    if named and not Path(named).is_file():
        raise SettingsError(f"GATEWAY_CONFIG names {named}, but there is no such file.")
    file = Path(named or "gateway.toml")
    try:
        loaded = ts.load_settings(
            Settings,
            loaders=[
                ts.FileLoader({"*": _OurToml(None)}, files=[file]),
                ts.EnvLoader(prefix="GATEWAY_"),
            ],
            converter=TSConverter(strlist_sep=","),
        )
    except (ExceptionGroup, TsError) as error:
        raise SettingsError(_one_sentence(error)) from None
    in_file = _nobodys(tomllib.loads(file.read_text("utf-8")) if file.is_file() else {})
    changes = {
        "base_url": loaded.base_url.rstrip("/"),
        "plugin_values": in_file | _nobodys(_environment()),
        "unknown_in_file": tuple(in_file),
        **overrides,
    }
    settings = attrs.evolve(loaded, **changes)
    check_settings(settings)
    return settings


class _OurToml(ts.TomlFormat):
    """Leaves to plugins what is no setting of ours; the plugin manager misses a mistyped one."""

    def __call__(self, path: Path, settings_cls: type, options: Any) -> dict[str, Any]:
        read = super().__call__(path, settings_cls, options)
        return {name: value for name, value in read.items() if name in _OURS}


def _nobodys(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is none of our own settings."""
    return {name: value for name, value in values.items() if name not in _OURS}


def _environment() -> dict[str, str]:
    prefix = "GATEWAY_"
    return {
        name.removeprefix(prefix).lower(): value
        for name, value in os.environ.items()
        if name.startswith(prefix)
    }


def _one_sentence(error: Exception) -> str:
    """Return the first mistake of a failed load in one sentence, without any value."""
    first: BaseException = error
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    option = re.search(r"option '([\w.]+)'", str(first))
    if option is None:
        return f"The settings cannot be read: {first}"
    return f"{variable(option[1])} has a value of the wrong kind. {hint(option[1])}"
