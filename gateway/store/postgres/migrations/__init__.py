"""Numbered schema files of PostgreSQL, with the numbers of SQLite's.

The first is the sum of SQLite's up to that number. From then on each change is a file in both
folders. All that a database lacks is applied in one transaction, while other nodes wait.
"""

from importlib import resources
from typing import Any

import psycopg

from gateway.errors import SettingsError
from gateway.store.postgres.locks import lock_number


def migrations() -> list[tuple[int, str]]:
    """Return (number, SQL) of every migration, in order."""
    files = [file for file in resources.files(__package__).iterdir() if file.name.endswith(".sql")]
    return sorted((int(file.name.partition("_")[0]), file.read_text("utf-8")) for file in files)


def version_of(raw: psycopg.Connection[Any]) -> int:
    """Return the number of the newest applied file; 0 for a database without a schema."""
    if _find(raw, "SELECT to_regclass('schema_version')") is None:
        return 0
    return int(_find(raw, "SELECT number FROM schema_version"))


def migrate(raw: psycopg.Connection[Any]) -> None:
    """Bring the schema up to date, or wait for the node that does.

    Raises `SettingsError` for a database that a newer gateway has written, unless that gateway
    noted that this one may run on it, and for one that holds another program's tables.
    """
    with raw.transaction():
        # Released at COMMIT. It waits for as long as another node migrates.
        raw.execute("SET LOCAL lock_timeout = 0")
        raw.execute("SET LOCAL statement_timeout = 0")
        raw.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number("migrate"),))
        current, known = version_of(raw), migrations()
        _check(raw, current, known[-1][0])
        for number, sql in known:
            if number > current:
                raw.execute(sql.encode())
                raw.execute("DELETE FROM schema_version")
                raw.execute("INSERT INTO schema_version (number) VALUES (%s)", (number,))


def _check(raw: psycopg.Connection[Any], current: int, newest: int) -> None:
    if current == 0 and _find(raw, "SELECT to_regclass('payments')") is not None:
        raise SettingsError(
            "The database of GATEWAY_DATABASE_URL holds tables of another program. Give the "
            "gateway a database of its own: CREATE DATABASE gateway"
        )
    if current > newest and _readable_by(raw, current) > newest:
        raise SettingsError(
            f"The database is of version {current}, but this gateway knows only version {newest}. "
            "Install the newer gateway."
        )


def _readable_by(raw: psycopg.Connection[Any], current: int) -> int:
    """Return the oldest schema whose gateway may run on a database."""
    value = _find(raw, "SELECT value FROM meta WHERE key = 'readable_by'")
    return int(value) if value is not None else current


def _find(raw: psycopg.Connection[Any], sql: str) -> Any:
    """Return the first value of the first row, or None."""
    row = raw.execute(sql.encode()).fetchone()
    return row[0] if row is not None else None
