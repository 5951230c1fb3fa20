"""What a plugin's statements may do, decided by SQLite's authorizer while it compiles them."""

import sqlite3
from collections.abc import Callable

from gateway.store.plugin_functions import PluginOwner

_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_WRITES = {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE}
# The first argument is the name.
_TABLES = {
    *(sqlite3.SQLITE_CREATE_TABLE, sqlite3.SQLITE_DROP_TABLE, sqlite3.SQLITE_REINDEX),
    *(sqlite3.SQLITE_CREATE_INDEX, sqlite3.SQLITE_DROP_INDEX),
}
_INDEXES = {sqlite3.SQLITE_CREATE_INDEX, sqlite3.SQLITE_DROP_INDEX}
# SQLite's own tables and the indexes that it makes. Only statements about schemas write them.
_SQLITES = "sqlite_"

Authorizer = Callable[[int, str | None, str | None, str | None, str | None], int]


def authorizer_of(owner: PluginOwner) -> Authorizer:
    """Return a function for `set_authorizer`."""

    def authorize(
        action: int, first: str | None, second: str | None, _: str | None, trigger: str | None
    ) -> int:
        # Statements of a trigger belong to the table's owner.
        is_allowed = trigger is not None or _may(owner, action, first or "", second or "")
        return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY

    return authorize


def _may(owner: PluginOwner, action: int, first: str, second: str) -> bool:
    if action in _ALLOWED:
        return True
    if action == sqlite3.SQLITE_READ:
        return not first or first.startswith(_SQLITES) or owner.may_read(first)
    if action in _WRITES:
        return first.startswith(_SQLITES) or owner.owns(first)
    if action in _TABLES:
        is_named_well = first.startswith(_SQLITES) or owner.owns(first)
        return is_named_well and (action not in _INDEXES or owner.owns(second))
    if action == sqlite3.SQLITE_ALTER_TABLE:
        return owner.owns(second)
    # Everything else, such as transactions, savepoints, PRAGMA, ATTACH and triggers.
    return False
