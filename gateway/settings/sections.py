"""Settings of plugins: each plugin has an attrs class, read from the same file and environment."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import attrs
import typed_settings as ts
from typed_settings.converters import TSConverter, get_path_converter_from
from typed_settings.exceptions import TsError

from gateway.errors import SettingsError

Section = TypeVar("Section")


@attrs.frozen
class SectionOffer:
    """A section of settings that a plugin registers."""

    plugin: str
    prefix: str
    kind: type

    @property
    def fields(self) -> dict[str, "attrs.Attribute[Any]"]:
        """The fields by their names in the file."""
        return names_of(self.prefix, self.kind)


def setting(
    default: Any,
    about: str,
    *,
    example: str = "",
    shown: bool = True,
    switches_on: bool = False,
    on_page: bool = False,
) -> Any:
    """Return a field of a settings class; `about` describes its effect and its unit.

    With `switches_on`, the plugin sells nothing while the setting is empty; `gateway plugins` then
    names the setting. With `on_page`, the operator may set it on the page Settings too. No address
    to which keys or requests are sent, and no file, may be `on_page`.
    """
    metadata = {"about": about, "example": example, "switches_on": switches_on, "on_page": on_page}
    return attrs.field(default=default, repr=shown, metadata=metadata)


def secret(
    about: str, *, example: str = "", switches_on: bool = False, on_page: bool = False
) -> Any:
    """Return a field whose value is never printed; its default is empty.

    `switches_on` and `on_page` are as for `setting`. If a section marks no field with the first,
    all its secrets count as marked.
    """
    metadata = {"about": about, "example": example, "switches_on": switches_on, "on_page": on_page}
    return attrs.field(default=ts.SecretStr(""), repr=False, metadata=metadata)


def variable(name: str) -> str:
    """Return the name of a setting's environment variable."""
    return f"GATEWAY_{name.upper()}"


def names_of(prefix: str, kind: type) -> dict[str, "attrs.Attribute[Any]"]:
    """Return a section's fields by their names in the file."""
    begin = f"{prefix}_" if prefix else ""
    return {f"{begin}{field.name}": field for field in attrs.fields(kind)}


def missing_in(values: Mapping[str, Any], prefix: str, kind: type) -> list[str]:
    """Return the empty variables without which a plugin sells nothing.

    A section without a prefix is of an optional part, which works without its secrets.
    """
    fields = names_of(prefix, kind)
    marked = {name for name, field in fields.items() if field.metadata.get("switches_on")}
    secrets = {name for name, field in fields.items() if isinstance(field.default, ts.SecretStr)}
    wanted = marked or (secrets if prefix else set())
    section: Any = read_section(values, prefix, kind)
    return [
        variable(name)
        for name, field in fields.items()
        if name in wanted and str(getattr(section, field.name)) in ("", "False")
    ]


def read_section(values: Mapping[str, Any], prefix: str, kind: type[Section]) -> Section:
    """Return a plugin's section from the values that are no settings of the gateway itself.

    Raises `SettingsError` with one sentence that names the setting and shows an example.
    """
    fields = names_of(prefix, kind)
    given = {field.name: values[name] for name, field in fields.items() if name in values}
    if not given:
        return kind()
    # Paths are relative to the current folder, not to that of the converter's creation.
    with get_path_converter_from(converter()).chdir(Path.cwd()):
        for name, field in fields.items():
            if field.name in given:
                _check_kind(name, field, given[field.name], kind)
        return converter().structure(given, kind)


def _check_kind(name: str, field: "attrs.Attribute[Any]", value: Any, kind: type) -> None:
    """Read one value alone, so that the error can name the setting and need not show the value."""
    try:
        converter().structure({field.name: value}, kind)
    except (ExceptionGroup, TsError, ValueError, TypeError, AttributeError, LookupError):
        raise wrong(name, field, "has a value of the wrong kind") from None


def check_section(settings: Any, prefix: str, section: Any) -> None:
    """Raise `SettingsError` for the first value that a section's method `validate` refuses.

    `validate(settings)` returns by field whether its value is right; it may raise `SettingsError`
    with a sentence of its own.
    """
    validate = getattr(section, "validate", None)
    if validate is None:
        return
    judged = validate(settings)
    for name, field in names_of(prefix, type(section)).items():
        if not judged.get(field.name, True):
            is_empty = str(getattr(section, field.name)) == ""
            raise wrong(name, field, "is not set" if is_empty else "is not right")


def wrong(name: str, field: "attrs.Attribute[Any]", state: str) -> SettingsError:
    """Return the error about a setting, with its purpose and an example."""
    return SettingsError(f"{variable(name)} {state}. {hint(name, field)}")


def hint(name: str, field: "attrs.Attribute[Any]") -> str:
    """Return a setting's purpose and an example."""
    example = field.metadata["example"] or field.default
    return f"{field.metadata['about']} Example: {variable(name)}={example}"


@functools.cache
def converter() -> TSConverter:
    """Return the converter of all settings.

    The first call imports pydantic if it is installed, unless that is hidden, as in `serve`.
    """
    return TSConverter(strlist_sep=",")
