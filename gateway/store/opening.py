"""Opens the database that the settings name: SQLite or PostgreSQL."""

import os
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

from gateway.errors import SettingsError
from gateway.settings import Settings
from gateway.store.moving.notes import MOVED_FROM, Move, move_of
from gateway.store.sql_store import SqlStore
from gateway.store.sqlite.store import SqliteStore


def open_store(settings: Settings, *, name: str | None = None) -> SqlStore:
    """Return the store for these settings, not opened yet.

    `name` identifies this process to the PostgreSQL server. By default it is the node's name, which
    also marks the node's leases.
    """
    if not settings.database_url:
        return SqliteStore(settings.data_dir / "gateway.db")
    # psycopg costs memory, and most gateways use SQLite.
    from gateway.store.postgres.store import PostgresStore  # noqa: PLC0415

    return PostgresStore(
        settings.database_url,
        node=name or node_name(settings),
        roles=settings.roles,
        connections=settings.database_connections,
    )


def node_name(settings: Settings) -> str:
    """Return this machine's name among the nodes of a database."""
    return settings.node or os.environ.get("FLY_MACHINE_ID") or socket.gethostname()


def refuse_left_behind(settings: Settings) -> None:
    """Raise `SettingsError` if the data folder has sales that were not migrated to PostgreSQL.

    Two databases would each accept a transaction that the other has already seen.
    """
    path = settings.data_dir / "gateway.db"
    if settings.database_url and path.exists() and _has_sales(path):
        raise SettingsError(
            f"GATEWAY_DATABASE_URL is set, but {path} has sales that were not migrated to that "
            "database: their payments could be spent again. Run `gateway migrate-store`, or unset "
            "the variable."
        )


async def refuse_other_database(settings: Settings, store: SqlStore) -> None:
    """Raise `SettingsError` if the data folder's sales were migrated to a different database.

    `store` must be open. A database without those sales would accept their payments again.
    """
    path = settings.data_dir / "gateway.db"
    if not settings.database_url or not path.exists():
        return
    move = _move_of(path)
    if move is not None and await store.known_meta(MOVED_FROM) != move.id:
        raise SettingsError(
            f"The sales in {path} were migrated to {move.target}, but GATEWAY_DATABASE_URL is "
            "another database, in which their payments could be spent again. Set the URL of the "
            "former, or another GATEWAY_DATA_DIR for a separate gateway."
        )


def _has_sales(path: Path) -> bool:
    with closing(_read_only(path)) as db:
        try:
            has_sales = db.execute("SELECT 1 FROM claims LIMIT 1").fetchone() is not None
        except sqlite3.OperationalError:
            # A new database has no tables.
            return False
    move = _move_of(path)
    return has_sales and (move is None or not move.is_done)


def _move_of(path: Path) -> Move | None:
    with closing(_read_only(path)) as db:
        return move_of(db)


def _read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True)
