"""SQLite: connections, the single writer, file size, copies and migrations.

The transactions themselves are one folder up; both databases share them.
"""

from gateway.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
