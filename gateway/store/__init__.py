"""The durable side: one SQLite database, one writer, and the transactions it runs."""

from gateway.store.sqlite import SqliteStore

__all__ = ["SqliteStore"]
