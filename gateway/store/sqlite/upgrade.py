"""Keeps a copy of a database before it is migrated, and says what a migration would change."""

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path

import attrs

from gateway.errors import SettingsError
from gateway.private_files import create_private
from gateway.store.sqlite import migrations, space

# Beside the copy itself, the migration and the write-ahead log need a little.
_MARGIN_BYTES = 5_000_000


@attrs.frozen(kw_only=True)
class Plan:
    """What a start of this gateway would change in a database."""

    version: int
    target: int
    # Such as "table alarms", "column tasks.provider", "index tasks_created".
    added: tuple[str, ...]
    # The same of what would be gone; empty where a migration only adds.
    removed: tuple[str, ...]
    # The files with tables of plugins, such as "webhooks 0002".
    of_plugins: tuple[str, ...]
    # The oldest schema whose gateway may run on the database afterwards.
    readable_by: int
    copy: Path
    copy_bytes: int
    free_bytes: int


def keep_before(db: sqlite3.Connection, path: Path) -> Path | None:
    """Write `gateway.db.before-<n>` where a database is about to be migrated to version n.

    Returns its path; None where nothing is to be migrated, or there is nothing in it yet. An older
    copy of that name is replaced: this one knows what it knew.

    Raises `SettingsError` where the disk has no room for the copy; then nothing was changed.
    """
    waiting = migrations.pending(db)
    if not waiting or migrations.version_of(db) == 0:
        return None
    copy = _copy_path(path, waiting[-1][0])
    check_room(path, what=f"Before an upgrade {path.name} is copied to {copy.name}")
    part = copy.with_name(f"{copy.name}.part")
    try:
        write_copy(db, part)
        part.replace(copy)
    except (OSError, sqlite3.Error) as error:
        part.unlink(missing_ok=True)
        raise SettingsError(
            f"The copy {copy}, made before an upgrade, cannot be written ({error}). Nothing was "
            "changed; make room on that disk, or go back to the release before."
        ) from None
    return copy


def write_copy(db: sqlite3.Connection, target: Path) -> None:
    """Write a consistent copy of an open database to a private file that survives a power cut."""
    target.unlink(missing_ok=True)
    create_private(target)
    db.execute("VACUUM INTO ?", (str(target),))
    with target.open("rb") as written:
        os.fsync(written.fileno())


def check_room(path: Path, *, what: str, floor_bytes: int = 0) -> None:
    """Raise `SettingsError` where a copy of the database would leave less than `floor_bytes` free.

    `what` completes "…, which needs 12 MB".
    """
    needed = copy_bytes(path) + max(floor_bytes, _MARGIN_BYTES)
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise SettingsError(
            f"{what}, which needs {_mb(needed)}, but only {_mb(free)} are free in {path.parent}. "
            f"Make the disk larger, or delete copies ({path.name}.before-…) that you do not need."
        )


def copy_bytes(path: Path) -> int:
    """Return how large a copy of the database may get."""
    return path.stat().st_size + space.wal_bytes(path)


def plan(path: Path) -> Plan:
    """Return what a start would change in the database; it is read only.

    Raises `SettingsError` for a database that this gateway may not run on.
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


@attrs.frozen
class _Schema:
    """The names in a database of one version, and the oldest schema that may run on it."""

    names: set[str]
    readable_by: int


def _schema_at(version: int) -> _Schema:
    """Return the schema that our migrations up to a version make."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for number, sql in migrations.migrations():
            if number <= version:
                migrations.apply(db, number, sql)
        return _Schema(_names_in(db), migrations.readable_by_of(db))


def _names_in(db: sqlite3.Connection) -> set[str]:
    """Return tables, columns, indexes and triggers, such as "column tasks.note"."""
    listed = "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite%'"
    found = set()
    for kind, name in db.execute(listed).fetchall():
        found.add(f"{kind} {name}")
        if kind == "table":
            columns = db.execute("SELECT name FROM pragma_table_info(?)", (name,))
            found.update(f"column {name}.{column}" for (column,) in columns)
    return found


def _shown(names: set[str]) -> tuple[str, ...]:
    """Return names in order; a whole table's columns are not listed beside it."""
    tables = {name.removeprefix("table ") for name in names if name.startswith("table ")}

    def is_in_table(name: str) -> bool:
        return name.startswith("column ") and name[7:].partition(".")[0] in tables

    return tuple(sorted(name for name in names if not is_in_table(name)))


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / 10**6:,.0f} MB"
