"""Backup before a migration, and a preview of what a migration would change."""

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path

import attrs

from gateway.errors import SettingsError
from gateway.store.disk import create_private, wal_bytes
from gateway.store.sqlite import migrations

# Space for the migration and the write-ahead log, in addition to the copy.
_MARGIN_BYTES = 5_000_000


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Plan:
    """The changes that starting this gateway would make to a database."""

    version: int
    target: int
    # Such as "table alarms", "column tasks.provider", "index tasks_created".
    added: tuple[str, ...]
    # Likewise; empty if the migration only adds.
    removed: tuple[str, ...]
    # Migrations of plugins, such as "webhooks 0002".
    of_plugins: tuple[str, ...]
    # The oldest schema version whose gateway can use the database afterwards.
    readable_by: int
    copy: Path
    copy_bytes: int
    free_bytes: int


def keep_before(db: sqlite3.Connection, path: Path) -> Path | None:
    """Write a copy `gateway.db.before-<n>` if the database is about to be migrated to version n.

    Returns its path, or None if there is nothing to migrate. Replaces an older copy of that name,
    which is outdated.

    Raises `SettingsError`, with nothing changed, if the disk has no room for the copy.
    """
    waiting = migrations.pending(db)
    if not waiting or migrations.version_of(db) == 0:
        return None
    copy = _copy_path(path, waiting[-1][0])
    check_room(path, what=f"An upgrade first copies {path.name} to {copy.name}")
    part = copy.with_name(f"{copy.name}.part")
    try:
        write_copy(db, part)
        part.replace(copy)
    except (OSError, sqlite3.Error) as error:
        part.unlink(missing_ok=True)
        raise SettingsError(
            f"Cannot write the copy {copy} before the upgrade ({error}). Nothing was changed. "
            "Free some space on that disk, or go back to the previous release."
        ) from None
    return copy


def write_copy(db: sqlite3.Connection, target: Path) -> None:
    """Write a consistent, private copy of an open database, and sync it to disk."""
    target.unlink(missing_ok=True)
    create_private(target)
    db.execute("VACUUM INTO ?", (str(target),))
    with target.open("rb") as written:
        os.fsync(written.fileno())


def check_room(path: Path, *, what: str, floor_bytes: int = 0) -> None:
    """Raise `SettingsError` if a copy of the database would leave less than `floor_bytes` free.

    `what` begins the message, before ", which needs 12 MB".
    """
    needed = copy_bytes(path) + max(floor_bytes, _MARGIN_BYTES)
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise SettingsError(
            f"{what}, which needs {_mb(needed)}, but only {_mb(free)} are free in {path.parent}. "
            f"Make the disk larger, or delete copies ({path.name}.before-…) that you do not need."
        )


def copy_bytes(path: Path) -> int:
    """Return an upper bound for the size of a copy."""
    return path.stat().st_size + wal_bytes(path)


def plan(path: Path) -> Plan:
    """Return the changes that a start would make, without writing anything.

    Raises `SettingsError` for a database that this gateway cannot use.
    """
    with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as db:
        waiting, version = migrations.pending(db), migrations.version_of(db)
        of_plugins = migrations.pending_of_plugins(db)
    target = waiting[-1][0] if waiting else version
    before, after = _schema_at(version), _schema_at(target)
    return Plan(
        version=version,
        target=target,
        added=_shown(after.names - before.names),
        removed=_shown(before.names - after.names),
        of_plugins=tuple(file.title for file in of_plugins),
        readable_by=after.readable_by,
        copy=_copy_path(path, target),
        copy_bytes=copy_bytes(path),
        free_bytes=shutil.disk_usage(path.parent).free,
    )


def _copy_path(path: Path, target: int) -> Path:
    return path.with_name(f"{path.name}.before-{target}")


@attrs.frozen(eq=False, repr=False)
class _Schema:
    names: set[str]
    readable_by: int


def _schema_at(version: int) -> _Schema:
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for number, sql in migrations.migrations():
            if number <= version:
                migrations.apply(db, number, sql)
        return _Schema(_names_in(db), migrations.readable_by_of(db))


def _names_in(db: sqlite3.Connection) -> set[str]:
    """Return names such as "column tasks.note"."""
    listed = "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite%'"
    found = set()
    for kind, name in db.execute(listed).fetchall():
        found.add(f"{kind} {name}")
        if kind == "table":
            columns = db.execute("SELECT name FROM pragma_table_info(?)", (name,))
            found.update(f"column {name}.{column}" for (column,) in columns)
    return found


def _shown(names: set[str]) -> tuple[str, ...]:
    """Omit the columns of tables that are listed themselves."""
    tables = {name.removeprefix("table ") for name in names if name.startswith("table ")}

    def is_in_table(name: str) -> bool:
        return name.startswith("column ") and name[7:].partition(".")[0] in tables

    return tuple(sorted(name for name in names if not is_in_table(name)))


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / 10**6:,.0f} MB"
