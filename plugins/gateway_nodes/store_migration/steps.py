"""The steps of a migration. After a crash between any two, at most one database sells.

1. Bar the file (`notes.begin`).
2. Copy everything in one transaction, which also writes the migration's id into PostgreSQL.
3. COMMIT.
4. Mark the file as migrated (`notes.finish`).

After a crash the file is barred, and the id in PostgreSQL shows whether step 3 was done.
"""

import contextlib
import secrets
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.errors import SettingsError
from gateway.store.sqlite.migrations import StoreMigration, migration_of
from gateway_nodes.store_migration import copying, notes

if TYPE_CHECKING:
    from gateway_nodes.store_migration.target import Target


@contextlib.contextmanager
def open_source(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the file with commits that survive a power cut.

    The caller has locked its folder, and migrated its schema unless a migration has begun.
    """
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA busy_timeout = 5000")
        db.execute("PRAGMA synchronous = FULL")
        yield db


def migrate_rows(
    source: sqlite3.Connection, target: "Target", address: str
) -> copying.Copied | None:
    """Migrate a file's rows to an empty database, or finish an interrupted migration.

    `target` has the newest schema and is in no transaction. Returns None if an earlier run has
    copied everything. Raises `SettingsError`, for example if the target is not empty.
    """
    migration = migration_of(source)
    _check_migration(migration, address)
    if migration is not None and _has(target, migration):
        notes.finish(source)
        return None
    copied, id_ = _copy(source, target, address, migration)
    if _origin(target) != id_:
        raise SettingsError(
            f"{notes.shown(address)} did not keep what it was given. Run `gateway migrate-store` "
            "again; until then this file stays barred."
        )
    notes.finish(source)
    return copied


def take_back(source: sqlite3.Connection, target: "Target", address: str) -> None:
    """Lift the bar from the file; raises `SettingsError` if the target has its rows."""
    migration = migration_of(source)
    if migration is None:
        raise SettingsError("No migration has begun, so there is nothing to take back.")
    _check_migration(migration, address)
    if _has(target, migration):
        raise SettingsError(
            f"{migration.target} has everything already, so nothing is taken back. Run "
            "`gateway migrate-store` without --take-back: it ends the migration."
        )
    notes.take_back(source)


def _check_migration(migration: StoreMigration | None, address: str) -> None:
    if migration is None:
        return
    if migration.is_done:
        raise SettingsError(
            f"This database was migrated to {migration.target} already. Set "
            "GATEWAY_DATABASE_URL to it."
        )
    if migration.target != notes.shown(address):
        raise SettingsError(
            f"A migration to {migration.target} has begun. Name that database, to end the "
            "migration or, with --take-back, to take it back."
        )


def _has(target: "Target", migration: StoreMigration) -> bool:
    return _origin(target) == migration.id


def _origin(target: "Target") -> str | None:
    with _write(target):
        return copying.origin_of(target)


def _copy(
    source: sqlite3.Connection, target: "Target", address: str, migration: StoreMigration | None
) -> tuple[copying.Copied, str]:
    """Copy everything and commit; returns the counts and the migration's id."""
    tables = copying.tables_of(source)
    target.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
    try:
        copying.check_target(target, tables)
        if migration is None:
            fresh = StoreMigration(
                id=secrets.token_hex(16), target=notes.shown(address), is_done=False
            )
            notes.begin(source, fresh)
            migration = fresh
        copied = copying.copy(source, target, tables, migration.id)
    except BaseException:
        # COMMIT was never sent, so the target is empty.
        _roll_back(target)
        if migration is not None:
            notes.take_back(source)
        raise
    target.execute("COMMIT")
    return copied, migration.id


def _roll_back(target: "Target") -> None:
    # If the connection is lost, the server rolls back.
    with contextlib.suppress(Exception):
        target.execute("ROLLBACK")


@contextlib.contextmanager
def _write(target: "Target") -> Iterator[None]:
    target.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
    try:
        yield
    except BaseException:
        _roll_back(target)
        raise
    target.execute("COMMIT")
