"""Which database keeps the data: the only place that knows both."""

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
    """Return the store that the settings name; it is not opened yet.

    `name` is what the database's server shows for this process; a command gives its own. Without
    one it is the node's, which also names the node's leases.
    """
    if not settings.database_url:
        return SqliteStore(settings.data_dir / "gateway.db")
    # psycopg costs memory, and most gateways are one machine.
    from gateway.store.postgres.store import PostgresStore  # noqa: PLC0415

    return PostgresStore(
        settings.database_url,
        node=name or node_name(settings),
        roles=settings.roles,
        connections=settings.database_connections,
    )


def node_name(settings: Settings) -> str:
    """Return this machine's name among those that share a database."""
    return settings.node or os.environ.get("FLY_MACHINE_ID") or socket.gethostname()


def refuse_left_behind(settings: Settings) -> None:
    """Raise `SettingsError` where the data folder holds sales that were not moved.

    Two databases that both believe a transaction unused would sell for it twice.
    """
    path = settings.data_dir / "gateway.db"
    if settings.database_url and path.exists() and _has_sales(path):
        raise SettingsError(
            f"GATEWAY_DATABASE_URL is set, but {path} holds sales of this gateway that were not "
            "moved there: their payments could be spent again. Run gateway migrate-store, or "
            "unset the variable."
        )


async def refuse_other_database(settings: Settings, store: SqlStore) -> None:
    """Raise `SettingsError` where the data folder's sales were moved to another database than this.

    `store` is open. A new database would know none of them, and sell for their payments again.
    """
    path = settings.data_dir / "gateway.db"
    if not settings.database_url or not path.exists():
        return
    move = _move_of(path)
    if move is not None and await store.known_meta(MOVED_FROM) != move.id:
        raise SettingsError(
            f"The sales in {path} were moved to another database ({move.target}) than "
            "GATEWAY_DATABASE_URL names: this one does not know them, and would sell for their "
            "payments again. Name that one, or give a gateway of its own another GATEWAY_DATA_DIR."
        )


def _has_sales(path: Path) -> bool:
    """Whether a database holds payments and was not moved."""
    with closing(_read_only(path)) as db:
        try:
            has_sales = db.execute("SELECT 1 FROM claims LIMIT 1").fetchone() is not None
        except sqlite3.OperationalError:
            # A database without these tables is new.
            return False
    move = _move_of(path)
    return has_sales and (move is None or not move.is_done)


def _move_of(path: Path) -> Move | None:
    """Return the move that a file was in; None for one that never moved."""
    with closing(_read_only(path)) as db:
        return move_of(db)


def _read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True)
