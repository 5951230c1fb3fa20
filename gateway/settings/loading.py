"""Reads the settings: `gateway.toml` (or the file `GATEWAY_CONFIG` names), then the environment."""

import os
import re
from pathlib import Path
from typing import Any

import attrs
import typed_settings as ts
from typed_settings.converters import TSConverter
from typed_settings.exceptions import TsError

from gateway.errors import SettingsError
from gateway.settings.checks import check_settings, hint
from gateway.settings.model import Settings, variable


def load_settings(**overrides: Any) -> Settings:
    """Read the settings from file and environment; `overrides` win over both.

    Raises `SettingsError` with one sentence for the first mistake.
    """
    named = os.environ.get("GATEWAY_CONFIG")
    if named and not Path(named).is_file():
        raise SettingsError(f"GATEWAY_CONFIG names {named}, but there is no such file.")
    try:
        loaded = ts.load_settings(
            Settings,
            loaders=[
                ts.FileLoader({"*": ts.TomlFormat(None)}, files=[named or "gateway.toml"]),
                ts.EnvLoader(prefix="GATEWAY_"),
            ],
            converter=TSConverter(strlist_sep=","),
        )
    except (ExceptionGroup, TsError) as error:
        raise SettingsError(_one_sentence(error)) from None
    settings = attrs.evolve(loaded, base_url=loaded.base_url.rstrip("/"), **overrides)
    check_settings(settings)
    return settings


def _one_sentence(error: Exception) -> str:
    """Return the first mistake of a failed load in one sentence, without any value."""
    first: BaseException = error
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    option = re.search(r"option '([\w.]+)'", str(first))
    if option is None:
        return f"The settings cannot be read: {first}"
    return f"{variable(option[1])} has a value of the wrong kind. {hint(option[1])}"
