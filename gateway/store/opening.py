"""Opens the database that the settings name: SQLite in the data folder, or that of a plugin."""

from gateway.installed import load_opener
from gateway.settings import Settings
from gateway.store.sql_store import SqlStore
from gateway.store.sqlite.store import SqliteStore


def open_store(settings: Settings, *, name: str | None = None) -> SqlStore:
    """Return the store for these settings, not opened yet.

    `name` identifies this process to the database's server. By default it is the node's name, which
    also marks the node's leases.

    Raises `SettingsError` if no plugin opens the database.
    """
    url = settings.database_url
    if not url:
        return SqliteStore(settings.data_dir / "gateway.db")
    open_shared = load_opener(
        "gateway.stores", "GATEWAY_DATABASE_URL", url, settings.plugins_disabled
    )
    store: SqlStore = open_shared(settings, name)
    return store
