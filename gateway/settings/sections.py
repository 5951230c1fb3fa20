"""Settings of plugins: an attrs class a plugin, read from the same file and environment as ours."""

from collections.abc import Mapping
from typing import Any, TypeVar

import attrs
import typed_settings as ts
from typed_settings.converters import TSConverter
from typed_settings.exceptions import TsError

from gateway.errors import SettingsError

Section = TypeVar("Section")


def setting(
    default: Any, about: str, *, example: str = "", shown: bool = True, switches_on: bool = False
) -> Any:
    """Return a field of a settings class: its default, what it does, and its unit.

    `switches_on`: without it the plugin sells nothing, and `gateway plugins` says so.
    """
    metadata = {"about": about, "example": example, "switches_on": switches_on}
    return attrs.field(default=default, repr=shown, metadata=metadata)


def secret(about: str, *, example: str = "", switches_on: bool = False) -> Any:
    """Return a field that never prints; empty where the operator has not set it.

    `switches_on` as for a setting; where a section marks no field, its secrets are what does.
    """
    metadata = {"about": about, "example": example, "switches_on": switches_on}
    return attrs.field(default=ts.SecretStr(""), repr=False, metadata=metadata)


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return f"GATEWAY_{name.upper()}"


def names_of(prefix: str, kind: type) -> dict[str, "attrs.Attribute[Any]"]:
    """Return a section's fields by the names they have in the file."""
    return {f"{prefix}_{field.name}": field for field in attrs.fields(kind)}


def missing_in(values: Mapping[str, Any], prefix: str, kind: type) -> list[str]:
    """Return the variables without a value that keep a plugin from selling."""
    fields = names_of(prefix, kind)
    marked = {name for name, field in fields.items() if field.metadata.get("switches_on")}
    secrets = {name for name, field in fields.items() if isinstance(field.default, ts.SecretStr)}
    section: Any = read_section(values, prefix, kind)
    return [
        variable(name)
        for name, field in fields.items()
        if name in (marked or secrets) and not str(getattr(section, field.name))
    ]


def read_section(values: Mapping[str, Any], prefix: str, kind: type[Section]) -> Section:
    """Return a plugin's settings out of everything that no setting of ours has claimed.

    Raises `SettingsError` with one sentence that names the setting and shows an example.
    """
    fields = names_of(prefix, kind)
    given = {field.name: values[name] for name, field in fields.items() if name in values}
    if not given:
        return kind()  # the usual case: most plugins are off, and reading costs 2 ms each
    for field_name in given:
        _check(given, field_name, prefix, kind)
    return _structured(given, kind)


def _check(given: Mapping[str, Any], name: str, prefix: str, kind: type) -> None:
    """Try one value alone, so that a mistake is known by its name, and never by its value."""
    try:
        _structured({name: given[name]}, kind)
    except (ExceptionGroup, TsError, ValueError, TypeError):
        field = attrs.fields_dict(kind)[name]
        raise wrong(f"{prefix}_{name}", field, "has a value of the wrong kind") from None


def wrong(name: str, field: "attrs.Attribute[Any]", state: str) -> SettingsError:
    """Return the one sentence about a setting that is not right."""
    example = field.metadata["example"] or field.default
    about = f"{field.metadata['about']} Example: {variable(name)}={example}"
    return SettingsError(f"{variable(name)} {state}. {about}")


def _structured(given: Mapping[str, Any], kind: type[Section]) -> Section:
    loader = ts.loaders.DictLoader(dict(given))
    return ts.load_settings(kind, loaders=[loader], converter=TSConverter(strlist_sep=","))
