"""Settings of plugins: each plugin has an attrs class, read from the same file and environment."""

import functools
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
    """Return a field of a settings class; `about` says what it does and in which unit.

    `switches_on` says that the plugin sells nothing while the setting is empty; `gateway plugins`
    then names the setting.
    """
    metadata = {"about": about, "example": example, "switches_on": switches_on}
    return attrs.field(default=default, repr=shown, metadata=metadata)


def secret(about: str, *, example: str = "", switches_on: bool = False) -> Any:
    """Return a field whose value is never printed; it is empty where the operator has not set it.

    `switches_on` is as for `setting`. Where a section marks no field, all its secrets count as
    marked.
    """
    metadata = {"about": about, "example": example, "switches_on": switches_on}
    return attrs.field(default=ts.SecretStr(""), repr=False, metadata=metadata)


def variable(name: str) -> str:
    """Return the name of a setting's environment variable."""
    return f"GATEWAY_{name.upper()}"


def names_of(prefix: str, kind: type) -> dict[str, "attrs.Attribute[Any]"]:
    """Return a section's fields by their names in the file."""
    return {f"{prefix}_{field.name}": field for field in attrs.fields(kind)}


def missing_in(values: Mapping[str, Any], prefix: str, kind: type) -> list[str]:
    """Return the empty variables without which a plugin sells nothing."""
    fields = names_of(prefix, kind)
    marked = {name for name, field in fields.items() if field.metadata.get("switches_on")}
    secrets = {name for name, field in fields.items() if isinstance(field.default, ts.SecretStr)}
    section: Any = read_section(values, prefix, kind)
    return [
        variable(name)
        for name, field in fields.items()
        if name in (marked or secrets) and str(getattr(section, field.name)) in ("", "False")
    ]


def read_section(values: Mapping[str, Any], prefix: str, kind: type[Section]) -> Section:
    """Return a plugin's section from the values that are no settings of the gateway itself.

    Raises `SettingsError` with one sentence that names the setting and shows an example.
    """
    fields = names_of(prefix, kind)
    given = {field.name: values[name] for name, field in fields.items() if name in values}
    if not given:
        return kind()
    for field_name in given:
        _check_value(given, field_name, prefix, kind)
    return _structure(given, kind)


def _check_value(given: Mapping[str, Any], name: str, prefix: str, kind: type) -> None:
    """Read one value alone, so that the error can name the setting and need not show the value."""
    try:
        _structure({name: given[name]}, kind)
    except (ExceptionGroup, TsError, ValueError, TypeError):
        field = attrs.fields_dict(kind)[name]
        raise wrong(f"{prefix}_{name}", field, "has a value of the wrong kind") from None


def wrong(name: str, field: "attrs.Attribute[Any]", state: str) -> SettingsError:
    """Return the error about a setting that is not right: what it is for, and an example."""
    example = field.metadata["example"] or field.default
    about = f"{field.metadata['about']} Example: {variable(name)}={example}"
    return SettingsError(f"{variable(name)} {state}. {about}")


def _structure(given: Mapping[str, Any], kind: type[Section]) -> Section:
    return _converter().structure(dict(given), kind)


@functools.cache
def _converter() -> TSConverter:
    """Convert values alone: `ts.load_settings` parses the source of `kind` at every call."""
    return TSConverter(strlist_sep=",")
