"""How large the database is."""

from gateway.store.sql import Connection, dialect_of


def database_bytes(db: Connection) -> int:
    """Return the size of the database without its journal, in bytes."""
    size: int = db.execute(dialect_of(db).size_query).fetchone()[0]
    return size
