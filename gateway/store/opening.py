"""Opens the database that the settings name: SQLite in the data folder, or a plugin's."""

from gateway.installed import load_opener
from gateway.settings import Settings
from gateway.store.sql_store import SqlStore
from gateway.store.sqlite.store import SqliteStore


def open_store(settings: Settings, *, name: str | None = None) -> SqlStore:
    """Return the store that the settings name; it is not opened yet.

    `name` is what the database's server shows for this process; a command gives its own. Without
    one it is the node's, which also names the node's leases.

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
