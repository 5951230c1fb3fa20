"""Numbered migrations, each applied once, in order, in one transaction.

A released file never changes, not even its comments. Each file sets `meta.readable_by`: the oldest
schema version whose gateway can still use the database. So the previous release can run on a newer
database as long as migrations only add.
"""

import sqlite3
from collections.abc import Iterator
from importlib import resources

import attrs

from gateway.errors import SettingsError
from gateway.store import plugin_tables
from gateway.store.disk import means_full
from gateway.store.plugin_functions import PluginOwner
from gateway.store.plugin_tables import SCHEMA_BASE, PluginFile
from gateway.store.sqlite.plugin_rights import authorizer_of


@attrs.frozen(kw_only=True)
class StoreMigration:
    """A started migration of the file's sales to another database, and whether it is complete.

    No gateway may use the file then: if two databases both considered a transfer unspent, it could
    pay twice. `gateway migrate-store` writes the markers.
    """

    # The same id is in the other database.
    id: str
    # The other database's URL without credentials.
    target: str
    # Whether the other database is known to be complete.
    is_done: bool


def migration_of(db: sqlite3.Connection) -> StoreMigration | None:
    """Return the migration of a file, or None."""
    try:
        notes = dict(
            db.execute(
                "SELECT key, value FROM meta WHERE key IN ('moving_to', 'moved_to', 'move_id')"
            ).fetchall()
        )
    except sqlite3.OperationalError:
        # The file is new, or belongs to another program.
        return None
    target = notes.get("moved_to") or notes.get("moving_to")
    if target is None:
        return None
    return StoreMigration(id=notes["move_id"], target=target, is_done="moved_to" in notes)


def refuse_migrated(db: sqlite3.Connection) -> None:
    """Raise `SettingsError` if a file's payments are, or may be, in another database."""
    migration = migration_of(db)
    if migration is None:
        return
    if migration.is_done:
        raise SettingsError(
            f"This database was migrated to {migration.target}, and a transfer must not pay in "
            "both. Set GATEWAY_DATABASE_URL to that database."
        )
    raise SettingsError(
        f"A migration of this database to {migration.target} has begun and not ended. Run "
        "`gateway migrate-store` again, which ends it, or with --take-back."
    )


def migrations() -> list[tuple[int, str]]:
    """Return (number, SQL) of every migration, in order."""
    files = [file for file in resources.files(__package__).iterdir() if file.name.endswith(".sql")]
    return sorted((int(file.name.partition("_")[0]), file.read_text("utf-8")) for file in files)


def version_of(db: sqlite3.Connection) -> int:
    """Return the number of the last applied migration; 0 for an empty database."""
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    return version


def pending(db: sqlite3.Connection) -> list[tuple[int, str]]:
    """Return the migrations that were not applied yet, in order.

    Raises `SettingsError` for a database that was migrated to PostgreSQL, that no release has
    written, or that a newer gateway has written and marked as not readable by this one.
    """
    refuse_migrated(db)
    current, known = version_of(db), migrations()
    newest = known[-1][0]
    if current > 0 and _meta(db, "schema_base") != SCHEMA_BASE:
        raise SettingsError(
            f"The database (version {current}) is from a development version or another program, "
            "and this gateway cannot read it. Keep the file, and start with an empty folder: "
            "GATEWAY_DATA_DIR=./data-new"
        )
    if current > newest and readable_by_of(db) > newest:
        raise SettingsError(
            f"The database has version {current}, but this gateway supports only version {newest}. "
            f"Install the newer gateway, or restore the copy gateway.db.before-{current}: "
            "`gateway restore FILE` shows what would be lost."
        )
    return [(number, sql) for number, sql in known if number > current]


def migrate(db: sqlite3.Connection) -> None:
    """Apply all pending migrations; `user_version` is the number of the last one.

    Raises `SettingsError` as `pending` and `pending_of_plugins` do.
    """
    for number, sql in pending(db):
        apply(db, number, sql)
    for file in pending_of_plugins(db):
        _apply_of_plugin(db, file)


def apply(db: sqlite3.Connection, number: int, sql: str) -> None:
    """Apply one migration and record its number, in one transaction."""
    db.executescript(f"BEGIN IMMEDIATE;\n{sql}\nPRAGMA user_version = {number};\nCOMMIT;")


def pending_of_plugins(db: sqlite3.Connection) -> list[PluginFile]:
    """Return the plugins' migrations that were not applied yet, in order.

    Raises `SettingsError` if a plugin breaks a rule of `plugin_tables`.
    """
    known = plugin_tables.find_files("sqlite", (sql for _, sql in migrations()))
    if not known or version_of(db) == 0:
        return known
    applied = db.execute("SELECT plugin, number FROM plugin_schemas").fetchall()
    return plugin_tables.pending(known, {(row[0], row[1]) for row in applied})


def _apply_of_plugin(db: sqlite3.Connection, file: PluginFile) -> None:
    """Apply a plugin's migration. SQLite refuses statements about tables that are not its own."""
    authorize = authorizer_of(PluginOwner(file.plugin, (f"{file.plugin}_",)))
    try:
        db.execute("BEGIN IMMEDIATE")
        db.set_authorizer(authorize)
        try:
            for statement in _statements(file.sql):
                db.execute(statement)
        finally:
            db.set_authorizer(None)
        db.execute("INSERT INTO plugin_schemas VALUES (?, ?)", (file.plugin, file.number))
        db.execute("COMMIT")
    except sqlite3.Error as error:
        if db.in_transaction:
            db.execute("ROLLBACK")
        if means_full(error):
            raise
        raise plugin_tables.failed(file, error) from error


def _statements(sql: str) -> Iterator[str]:
    """Yield the statements of a script. `executescript` would end the transaction first."""
    begun = ""
    for piece in sql.split(";"):
        begun += piece + ";"
        if sqlite3.complete_statement(begun):
            yield begun
            begun = ""
    if begun.strip("; \n\t"):
        yield begun


def readable_by_of(db: sqlite3.Connection) -> int:
    """Return the oldest schema version whose gateway can use a database."""
    value = _meta(db, "readable_by")
    return int(value) if value is not None else version_of(db)


def _meta(db: sqlite3.Connection, key: str) -> str | None:
    try:
        row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    except sqlite3.OperationalError:
        # The file is new, or belongs to another program.
        return None
    return row[0] if row is not None else None
