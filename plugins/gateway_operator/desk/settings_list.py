"""Every setting, with its purpose, value and source."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import typed_settings as ts

from gateway.errors import SettingsError
from gateway.plugins.installed import BUNDLED, find_sections
from gateway.settings import SectionOffer, Settings, variable
from gateway.settings.page_values import unseal_all
from gateway.store.page_settings import StoredSetting, find_all
from gateway.telemetry.redaction import names_secret
from gateway_operator.desk.desk import Desk

_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
SET, NOT_SET = "set", "not set"
# The title of the core's settings.
CORE = "The gateway"


@attrs.frozen(kw_only=True)
class SettingRow:
    """One setting; of a secret only whether it is set."""

    name: str
    about: str
    example: str
    value: str
    is_secret: bool
    is_default: bool
    # `default`, `page`, `environment`, `the command`, or a file.
    source: str
    # Whether the page may set it.
    on_page: bool
    # Of the value that the page has stored: when (Unix seconds), as text if it is no secret, and
    # why it has no effect.
    stored_at: float | None = None
    stored_value: str = ""
    unread: str = ""
    # Whether the next start changes the value.
    is_pending: bool = False

    @property
    def variable(self) -> str:
        """The variable of the environment."""
        return variable(self.name)

    @property
    def is_given(self) -> bool:
        """Whether a file, the environment or a command sets it, which wins over the page."""
        return self.source not in ("default", "page")


@attrs.frozen(kw_only=True)
class SettingGroup:
    """The settings of the gateway or of one plugin."""

    title: str
    rows: Sequence[SettingRow]


@attrs.frozen(kw_only=True)
class StoredState:
    """The difference between the stored settings and those in effect."""

    # Why a stored one has no effect, by name.
    unread: Mapping[str, str] = attrs.field(factory=dict)
    # The names that the next start changes.
    pending: Sequence[str] = ()


async def read_groups(desk: Desk) -> list[SettingGroup]:
    """Return every declared setting, the core's first."""
    stored = await desk.store.sum(find_all)
    return list_groups(desk.settings, sections_of(desk), stored)


async def read_state(desk: Desk) -> StoredState:
    """Return which stored settings have no effect, and which wait for a start.

    Empty in a command, which need not have read the settings that the gateway has.
    """
    if desk.running is None:
        return StoredState()
    return compare(desk.settings, await desk.store.sum(find_all))


def sections_of(desk: Desk) -> Sequence[SectionOffer]:
    """Return the plugins' settings; in a command those of the optional parts."""
    return find_sections(desk.settings) if desk.running is None else desk.running.sections


def compare(settings: Settings, stored: Mapping[str, StoredSetting]) -> StoredState:
    """Compare the stored settings with those that this process read at its start.

    What file or environment set is left out: the page does not change it.
    """
    names = [*stored, *(name for name in settings.page_sealed if name not in stored)]
    open_names = [name for name in names if name not in settings.sources]
    sealed = {name: one.sealed for name, one in stored.items() if name in open_names}
    _, unread = unseal_all(settings, sealed)
    unread |= {
        name: problem
        for name, problem in settings.page_unread.items()
        if sealed.get(name) == settings.page_sealed[name]
    }
    pending = [
        name
        for name in open_names
        if name not in unread and sealed.get(name) != settings.page_sealed.get(name)
    ]
    return StoredState(unread=unread, pending=pending)


def list_groups(
    settings: Settings,
    sections: Sequence[SectionOffer],
    stored: Mapping[str, StoredSetting],
) -> list[SettingGroup]:
    """Return the rows of the core and of each plugin."""
    state = compare(settings, stored)
    texts, _ = unseal_all(settings, {name: one.sealed for name, one in stored.items()})
    found: dict[str, list[SettingRow]] = {}
    for title, name, field, value in _declared(settings, sections):
        row = _describe(settings, title, name, field, value)
        if name in stored:
            text = "" if row.is_secret else texts.get(name, "")
            row = attrs.evolve(row, stored_at=stored[name].at, stored_value=text)
        row = attrs.evolve(row, unread=state.unread.get(name, ""), is_pending=name in state.pending)
        found.setdefault(title, []).append(row)
    return [SettingGroup(title=title, rows=rows) for title, rows in found.items()]


def find_row(groups: Sequence[SettingGroup], name: str) -> SettingRow | None:
    """Return a setting by its name in the file."""
    return next((row for group in groups for row in group.rows if row.name == name), None)


def _declared(
    settings: Settings, sections: Sequence[SectionOffer]
) -> Iterator[tuple[str, str, "attrs.Attribute[Any]", Any]]:
    """Yield (group, name, field, value) of each declared setting."""
    for field in attrs.fields(Settings):
        # A table for each endpoint has a page of its own.
        if "about" in field.metadata and field.name != "endpoints":
            yield CORE, field.name, field, getattr(settings, field.name)
    for section in sections:
        values: Any
        try:
            values = settings.section(section.prefix, section.kind)
        except SettingsError:
            # A third party's plugin was left out because of it.
            values = section.kind()
        for name, field in section.fields.items():
            yield section.plugin, name, field, getattr(values, field.name)


def _describe(
    settings: Settings, title: str, name: str, field: "attrs.Attribute[Any]", value: Any
) -> SettingRow:
    on_page = bool(field.metadata.get("on_page"))
    is_secret = (
        # A third party may have declared a secret as a plain setting, which nothing showed before.
        (not on_page and title not in (CORE, *BUNDLED))
        or isinstance(field.default, ts.SecretStr)
        or isinstance(value, ts.SecretStr)
        or not field.repr
        or names_secret(name)
    )
    is_default = value == field.default
    shown = _write_secret(value, is_default=is_default) if is_secret else as_text(value)
    return SettingRow(
        name=name,
        about=_plain(field.metadata["about"]),
        example=_plain(field.metadata["example"]),
        value=shown,
        is_secret=is_secret,
        is_default=is_default,
        source=_source_of(settings, name, is_default=is_default),
        on_page=on_page,
    )


def _plain(text: str) -> str:
    """Return a text of docs/settings.md without its Markdown."""
    return _LINK.sub(r"\1", text).replace("`", "")


def _source_of(settings: Settings, name: str, *, is_default: bool) -> str:
    if name in settings.sources:
        return settings.sources[name]
    if name in settings.page_names:
        return "page"
    return "default" if is_default and name not in settings.plugin_values else "the command"


def _write_secret(value: Any, *, is_default: bool) -> str:
    return SET if value and not is_default else NOT_SET


def as_text(value: Any) -> str:
    """Return a value as it is written in the environment."""
    if isinstance(value, tuple | list):
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
