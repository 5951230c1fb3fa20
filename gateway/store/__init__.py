"""Durable state: the database, and the transactions and queries of payments and tasks.

`gateway.payments` decides how a payment may change. `gateway.outputs` stores output files.
"""

from gateway.store.sql_store import SqlStore
from gateway.store.sqlite.store import SqliteStore

__all__ = ["SqlStore", "SqliteStore"]
