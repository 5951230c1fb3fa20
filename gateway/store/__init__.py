"""SQLite: one writer, the migrations, the writes of money and tasks, and the backup.

What a payment may become is decided in `gateway.payments`; outputs lie in `gateway.outputs`.
"""

from gateway.store.sqlite import SqliteStore

__all__ = ["SqliteStore"]
