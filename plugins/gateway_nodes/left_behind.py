"""Checks that a start on PostgreSQL leaves no sales behind in the data folder's SQLite."""

import sqlite3
from contextlib import closing
from pathlib import Path

from gateway.errors import SettingsError
from gateway.settings import Settings
from gateway.store import SqlStore
from gateway.store.sqlite.migrations import StoreMigration, migration_of
from gateway_nodes.store_migration.notes import MIGRATED_FROM


def refuse_left_behind(settings: Settings) -> None:
    """Raise `SettingsError` if the data folder has sales that were not migrated to PostgreSQL.

    Otherwise a transaction could pay once in each database.
    """
    path = settings.data_dir / "gateway.db"
    if settings.database_url and path.exists() and _has_sales(path):
        raise SettingsError(
            f"GATEWAY_DATABASE_URL is set, but {path} holds sales of this gateway that were not "
            "migrated there: their payments could be spent again. Run gateway migrate-store, or "
            "unset the variable."
        )


async def refuse_other_database(settings: Settings, store: SqlStore) -> None:
    """Raise `SettingsError` if the data folder's sales were migrated to a different database.

    `store` must be open. A database without those sales would accept their payments again.
    """
    path = settings.data_dir / "gateway.db"
    if not settings.database_url or not path.exists():
        return
    migration = _migration_of(path)
    if migration is not None and await store.known_meta(MIGRATED_FROM) != migration.id:
        raise SettingsError(
            f"The sales in {path} were migrated to another database ({migration.target}) than "
            "GATEWAY_DATABASE_URL names: this one does not know them, and would sell for their "
            "payments again. Name that one, or give a gateway of its own another GATEWAY_DATA_DIR."
        )


def _has_sales(path: Path) -> bool:
    with closing(_read_only(path)) as db:
        try:
            has_sales = db.execute("SELECT 1 FROM claims LIMIT 1").fetchone() is not None
        except sqlite3.OperationalError:
            # A new database has no tables.
            return False
    migration = _migration_of(path)
    return has_sales and (migration is None or not migration.is_done)


def _migration_of(path: Path) -> StoreMigration | None:
    with closing(_read_only(path)) as db:
        return migration_of(db)


def _read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True)
