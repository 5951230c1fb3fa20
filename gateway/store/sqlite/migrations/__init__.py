"""Numbered schema files. Each is applied once, in order, between BEGIN and COMMIT.

A file that was released is never changed, comments included: a change is a new file. Each file
writes `meta.readable_by`: the number of the oldest schema whose gateway may run on the database
afterwards. So the release before runs on a newer database as long as files only add.
"""

import sqlite3
from importlib import resources

from gateway.errors import SettingsError
from gateway.store import plugin_tables
from gateway.store.disk import means_full
from gateway.store.moved import check_stays
from gateway.store.plugin_tables import PluginFile


def migrations() -> list[tuple[int, str]]:
    """Return (number, SQL) of every migration, in order."""
    files = [file for file in resources.files(__package__).iterdir() if file.name.endswith(".sql")]
    return sorted((int(file.name.partition("_")[0]), file.read_text("utf-8")) for file in files)


def version_of(db: sqlite3.Connection) -> int:
    """Return the number of the newest applied file; 0 for a database without a schema."""
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    return version


def pending(db: sqlite3.Connection) -> list[tuple[int, str]]:
    """Return the migrations that the database lacks, in order.

    Raises `SettingsError` for a database that was moved, for one that no release has written, and
    for one that a newer gateway has written, unless that gateway noted that this one may run on it.
    """
    check_stays(db)
    current, known = version_of(db), migrations()
    newest = known[-1][0]
    if current > 0 and _meta(db, "schema_base") is None:
        raise SettingsError(
            f"The database is of version {current} of a development version or of another program, "
            "which this gateway cannot read. Keep the file, and start with an empty folder: "
            "GATEWAY_DATA_DIR=./data-new"
        )
    if current > newest and readable_by_of(db) > newest:
        raise SettingsError(
            f"The database is of version {current}, but this gateway knows only version {newest}. "
            f"Install the newer gateway, or put back the copy gateway.db.before-{current}: "
            "gateway restore FILE says what that forgets."
        )
    return [(number, sql) for number, sql in known if number > current]


def migrate(db: sqlite3.Connection) -> None:
    """Bring the schema up to date; `user_version` is the number of the newest applied file.

    Raises `SettingsError` as `pending` and `pending_of_plugins` do.
    """
    for number, sql in pending(db):
        apply(db, number, sql)
    for file in pending_of_plugins(db):
        _apply_of_plugin(db, file)


def apply(db: sqlite3.Connection, number: int, sql: str) -> None:
    """Apply one file and note its number, in one transaction."""
    db.executescript(f"BEGIN IMMEDIATE;\n{sql}\nPRAGMA user_version = {number};\nCOMMIT;")


def pending_of_plugins(db: sqlite3.Connection) -> list[PluginFile]:
    """Return the files of plugins that the database lacks, in order.

    Raises `SettingsError` where a plugin breaks a rule of `plugin_tables`.
    """
    known = plugin_tables.find_files("sqlite", (sql for _, sql in migrations()))
    if not known or version_of(db) == 0:
        return known
    applied = db.execute("SELECT plugin, number FROM plugin_schemas").fetchall()
    return plugin_tables.pending(known, {(row[0], row[1]) for row in applied})


def _apply_of_plugin(db: sqlite3.Connection, file: PluginFile) -> None:
    note = f"INSERT INTO plugin_schemas VALUES ('{file.plugin}', {file.number});"  # noqa: S608 - checked
    try:
        db.executescript(f"BEGIN IMMEDIATE;\n{file.sql}\n;{note}\nCOMMIT;")
    except sqlite3.Error as error:
        if db.in_transaction:
            db.execute("ROLLBACK")
        if means_full(error):
            raise
        raise plugin_tables.failed(file, error) from error


def readable_by_of(db: sqlite3.Connection) -> int:
    """Return the oldest schema whose gateway may run on a database; its own where it says none."""
    value = _meta(db, "readable_by")
    return int(value) if value is not None else version_of(db)


def _meta(db: sqlite3.Connection, key: str) -> str | None:
    try:
        row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    except sqlite3.OperationalError:
        # A new file has no tables, and another program's has others.
        return None
    return row[0] if row is not None else None
