"""The operator's settings of a gateway under test."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from gateway.settings import Settings


def settings_of(values: Mapping[str, Any], *, wallet: str, data_dir: Path) -> Settings:
    """Return settings; `values` are the gateway's and the plugins', by their gateway.toml names."""
    names = attrs.fields_dict(Settings)
    ours: dict[str, Any] = {name: value for name, value in values.items() if name in names}
    others = {name: value for name, value in values.items() if name not in names}
    return Settings(**ours, wallet=wallet, data_dir=data_dir, plugin_values=others)
