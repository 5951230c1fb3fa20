"""What operators read and do, on SQLite: one module for each group of tables."""

from gateway.store.operators.records import SqlOperators

__all__ = ["SqlOperators"]
