"""Numbered PostgreSQL migrations, with the same numbers as SQLite's.

Each change is a file in both folders. All pending files are applied in one transaction, while other
nodes wait.

Nodes of the previous release keep running while the first new node migrates. As for SQLite, each
file sets `meta.readable_by`, the oldest schema version whose gateway may still use the database. A
file that only adds something sets its predecessor.
"""

import time
from collections.abc import Sequence
from importlib import resources
from typing import Any

import psycopg
import structlog
from psycopg import errors

from gateway.errors import SettingsError
from gateway.store import plugin_tables
from gateway.store.plugin_functions import PluginOwner
from gateway.store.plugin_tables import SCHEMA_BASE
from gateway_nodes.postgres.locks import lock_number
from gateway_nodes.postgres.plugin_rights import NotItsOwn, State

_log = structlog.get_logger()

# A statement that waits for a table lock blocks everything behind it, so give up early and retry.
_LOCK_MS = 3_000
_PAUSE_S = 1.0
# An operator's report may read a table for two minutes.
_TIMEOUT_S = 180.0
# A node sends a heartbeat every few seconds.
_GONE_S = 20.0


def migrations() -> list[tuple[int, str]]:
    """Return (number, SQL) of every migration, in order."""
    files = [file for file in resources.files(__package__).iterdir() if file.name.endswith(".sql")]
    return sorted((int(file.name.partition("_")[0]), file.read_text("utf-8")) for file in files)


def version_of(raw: psycopg.Connection[Any]) -> int:
    """Return the number of the newest applied migration; 0 without a schema."""
    if _find(raw, "SELECT to_regclass('schema_version')") is None:
        return 0
    return int(_find(raw, "SELECT number FROM schema_version"))


def migrate(raw: psycopg.Connection[Any]) -> None:
    """Migrate the schema, or wait for the node that does.

    Raises `SettingsError` if
    - a newer, incompatible gateway, no release or another program has written the database,
    - running nodes could not read the new schema,
    - a plugin breaks a rule of `plugin_tables`, or
    - the tables stay locked for minutes, by queries or by another node's migration.
    """
    give_up_at = time.monotonic() + _TIMEOUT_S
    while True:
        try:
            with raw.transaction():
                _apply_pending(raw)
        except (errors.LockNotAvailable, errors.DeadlockDetected) as error:
            if time.monotonic() >= give_up_at:
                raise SettingsError(
                    "The database's tables cannot be changed while something reads them for "
                    "minutes. Look for long queries (pg_stat_activity), and start again."
                ) from error
            _log.warning("migration.waits", error=str(error).partition("\n")[0])
            time.sleep(_PAUSE_S)
        else:
            return


def _apply_pending(raw: psycopg.Connection[Any]) -> None:
    raw.execute("SET LOCAL statement_timeout = 0")
    _wait_for_turn(raw)
    raw.execute(f"SET LOCAL lock_timeout = {_LOCK_MS}".encode())
    current, known = version_of(raw), migrations()
    _check(raw, current, known[-1][0])
    pending = [(number, sql) for number, sql in known if number > current]
    for number, sql in pending:
        raw.execute(sql.encode())
        raw.execute("DELETE FROM schema_version")
        raw.execute("INSERT INTO schema_version (number) VALUES (%s)", (number,))
    if pending:
        _refuse_beside_older_nodes(raw, current)
    _apply_of_plugins(raw, [sql for _, sql in known])


def _apply_of_plugins(raw: psycopg.Connection[Any], own_sql: Sequence[str]) -> None:
    known = plugin_tables.find_files("postgres", own_sql)
    if not known:
        return
    applied = raw.execute("SELECT plugin, number FROM plugin_schemas").fetchall()
    # The states below need the transaction's id, and nothing may have been written yet.
    raw.execute("SELECT pg_current_xact_id()")
    for file in plugin_tables.pending(known, {(row[0], row[1]) for row in applied}):
        owner = PluginOwner(file.plugin, (f"{file.plugin}_",))
        before = State.read(raw, owner)
        try:
            raw.execute(file.sql.encode())
            before.compare(State.read(raw, owner), owner)
        except NotItsOwn as error:
            raise plugin_tables.failed(file, error) from error
        except (errors.LockNotAvailable, errors.DeadlockDetected):
            raise
        except psycopg.Error as error:
            raise plugin_tables.failed(file, error) from error
        raw.execute("INSERT INTO plugin_schemas VALUES (%s, %s)", (file.plugin, file.number))


def _wait_for_turn(raw: psycopg.Connection[Any]) -> None:
    """Take the migration lock until COMMIT; raises `SettingsError` on timeout."""
    raw.execute(f"SET LOCAL lock_timeout = {_TIMEOUT_S * 1000:.0f}".encode())
    try:
        raw.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number("migrate"),))
    except errors.LockNotAvailable as error:
        raise SettingsError(
            "Another node has been bringing the database's tables up to date for minutes. Start "
            "this one again when that is done; pg_stat_activity shows what it waits for."
        ) from error


def _refuse_beside_older_nodes(raw: psycopg.Connection[Any], before: int) -> None:
    """Raise `SettingsError`, which rolls back, if running nodes cannot read the new schema."""
    if _readable_by(raw, before) <= before:
        return
    names = _find(
        raw,
        """SELECT string_agg(name, ', ' ORDER BY name) FROM nodes
           WHERE life <> '' AND seen_at > extract(epoch FROM clock_timestamp()) - %s""",
        _GONE_S,
    )
    if names:
        raise SettingsError(
            f"This release changes the database so that nodes of the one before cannot read it, "
            f"and some run: {names}. Stop them all, wait for {_GONE_S:.0f} seconds, start again."
        )


def _check(raw: psycopg.Connection[Any], current: int, newest: int) -> None:
    if current == 0 and _find(raw, "SELECT to_regclass('payments')") is not None:
        raise SettingsError(
            "The database of GATEWAY_DATABASE_URL holds tables of another program. Give the "
            "gateway a database of its own: CREATE DATABASE gateway"
        )
    if current > 0 and _meta(raw, "schema_base") != SCHEMA_BASE:
        raise SettingsError(
            f"The database is of version {current} of a development version, which this gateway "
            "cannot read. Keep it, and give the gateway an empty one: CREATE DATABASE gateway"
        )
    if current > newest and _readable_by(raw, current) > newest:
        raise SettingsError(
            f"The database is of version {current}, but this gateway knows only version {newest}. "
            "Install the newer gateway."
        )


def _readable_by(raw: psycopg.Connection[Any], current: int) -> int:
    """Return the oldest schema version whose gateway may use the database."""
    value = _meta(raw, "readable_by")
    return int(value) if value is not None else current


def _meta(raw: psycopg.Connection[Any], key: str) -> str | None:
    value: str | None = _find(raw, "SELECT value FROM meta WHERE key = %s", key)
    return value


def _find(raw: psycopg.Connection[Any], sql: str, *parameters: object) -> Any:
    row = raw.execute(sql.encode(), parameters or None).fetchone()
    return row[0] if row is not None else None
