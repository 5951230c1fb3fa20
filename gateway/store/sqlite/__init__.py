"""What only SQLite has: its connections, the one writer, its files' size, copies and migrations.

What the transactions write is one folder up, and the same on every database.
"""

from gateway.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
