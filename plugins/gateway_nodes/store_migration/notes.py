"""Marks an SQLite file as migrating or migrated to PostgreSQL, so that no gateway runs on it.

If two databases both had a transfer as unspent, it could pay twice. So the file is barred before
the target has the rows, and stays barred afterwards. This release reads the mark
(`gateway.store.sqlite.migrations`), older ones refuse the schema version, and processes that have
the file open already run into triggers.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from urllib.parse import urlsplit

from gateway.store.sqlite.migrations import StoreMigration

# Releases that do not know the mark refuse a newer schema version.
_BARRED_VERSION = 1_000_000


# The key in the target's `meta` for the id of its migration.
MIGRATED_FROM = "moved_from"


def shown(address: str) -> str:
    """Return a database URL without credentials and options: either may contain a password."""
    url = urlsplit(address)
    return f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"


def begin(db: sqlite3.Connection, migration: StoreMigration) -> None:
    """Bar a file: once this returns, nothing can write to it, not even older releases."""
    version = db.execute("PRAGMA user_version").fetchone()[0]
    row = db.execute("SELECT value FROM meta WHERE key = 'readable_by'").fetchone()
    notes = {
        "moving_to": migration.target,
        "move_id": migration.id,
        "version_before_move": str(version),
        "readable_by_before_move": row[0],
        "readable_by": str(_BARRED_VERSION),
    }
    with _write(db):
        _set(db, notes, version=_BARRED_VERSION)
        for table, change in _barred(db):
            db.execute(
                f"""CREATE TRIGGER moved_{table}_{change} BEFORE {change} ON {table}
                    BEGIN SELECT RAISE(ABORT, 'the database was migrated'); END"""
            )


def finish(db: sqlite3.Connection) -> None:
    """Mark the migration as complete; the file stays barred for ever."""
    db.execute("UPDATE meta SET key = 'moved_to' WHERE key = 'moving_to'")


def take_back(db: sqlite3.Connection) -> None:
    """Lift the bar from a file. The caller has checked that the target has none of its rows."""
    kept = dict(db.execute("SELECT key, value FROM meta WHERE key LIKE '%_before_move'").fetchall())
    readable_by, version = kept["readable_by_before_move"], int(kept["version_before_move"])
    with _write(db):
        for table, change in _barred(db):
            db.execute(f"DROP TRIGGER moved_{table}_{change}")
        db.execute("DELETE FROM meta WHERE key IN ('moving_to', 'move_id')")
        db.execute("DELETE FROM meta WHERE key LIKE '%_before_move'")
        _set(db, {"readable_by": readable_by}, version=version)


def _set(db: sqlite3.Connection, notes: dict[str, str], *, version: int) -> None:
    for key, value in notes.items():
        db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))
    db.execute(f"PRAGMA user_version = {version}")


def _barred(db: sqlite3.Connection) -> list[tuple[str, str]]:
    """Return the (table, statement) pairs that a barred file refuses; `meta` stays writable."""
    names = db.execute(
        """SELECT name FROM sqlite_master
           WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name <> 'meta'"""
    ).fetchall()
    return [(name, change) for (name,) in names for change in ("INSERT", "UPDATE", "DELETE")]


@contextlib.contextmanager
def _write(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")
