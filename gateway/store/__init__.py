"""Everything durable: the transactions of money and tasks, reads, and the databases they run on.

What a payment may become is decided in `gateway.payments`; outputs lie in `gateway.outputs`.
"""

from gateway.store.sql_store import SqlStore
from gateway.store.sqlite.store import SqliteStore

__all__ = ["SqlStore", "SqliteStore"]
