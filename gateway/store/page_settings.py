"""Settings that the page Settings has stored: one sealed value per name."""

import asyncio
import contextlib
import sqlite3
from pathlib import Path

import attrs
import structlog

from gateway.errors import SettingsError
from gateway.settings import Settings, variable
from gateway.settings.page_values import read_sealed
from gateway.store.data_folder import enter_data, open_store
from gateway.store.disk import full_disk
from gateway.store.sql import Connection

_PREFIX = "setting."
_log = structlog.get_logger()


@attrs.frozen(eq=False, repr=False)
class StoredSetting:
    """A sealed value, and when it was set (Unix seconds)."""

    sealed: str
    at: float


def find_all(db: Connection) -> dict[str, StoredSetting]:
    """Return the stored settings by their names in the file."""
    rows = db.execute(
        "SELECT key, value FROM meta WHERE key LIKE ? ORDER BY key", (f"{_PREFIX}%",)
    ).fetchall()
    return {str(row[0]).removeprefix(_PREFIX): _parse(str(row[1])) for row in rows}


def _parse(value: str) -> StoredSetting:
    at, _, sealed = value.partition(" ")
    return StoredSetting(sealed, float(at))


def put(db: Connection, name: str, setting: StoredSetting | None) -> None:
    """Store a setting; None removes it."""
    key = f"{_PREFIX}{name}"
    db.execute("DELETE FROM meta WHERE key = ?", (key,))
    if setting is not None:
        value = f"{setting.at} {setting.sealed}"
        db.execute("INSERT INTO meta (key, value) VALUES (?, ?)", (key, value))


def with_page_settings(settings: Settings) -> Settings:
    """Return the settings with those of the page, before the gateway opens its database.

    Without `GATEWAY_SETTINGS_SECRET` they are unread. A database that does not exist is not made,
    and none is migrated. Raises `SettingsError` if the database cannot be read.
    """
    enter_data(settings)
    stored = _read_shared(settings) if settings.database_url else _read_file(settings.data_dir)
    found = read_sealed(settings, {name: one.sealed for name, one in stored.items()})
    warn_of_unread(found)
    return found


def warn_of_unread(settings: Settings) -> None:
    """Log the settings of the page that have no effect."""
    for name, problem in settings.page_unread.items():
        _log.warning("setting.unread", name=variable(name), error=problem)


def _read_file(folder: Path) -> dict[str, StoredSetting]:
    path = folder / "gateway.db"
    if not path.exists():
        return {}
    try:
        with contextlib.closing(sqlite3.connect(path)) as db:
            # The file of a start that was killed at once.
            if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone() is None:
                return {}
            return find_all(db)
    except sqlite3.Error as error:
        raise full_disk(folder, error) or SettingsError(
            f"The database {path} cannot be opened ({error})."
        ) from None


def _read_shared(settings: Settings) -> dict[str, StoredSetting]:
    store = open_store(settings, name="gateway settings")
    return asyncio.run(store.read_early(find_all)) or {}
