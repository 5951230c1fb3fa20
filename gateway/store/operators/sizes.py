"""How large the database is."""

import sqlite3


def database_bytes(db: sqlite3.Connection) -> int:
    """Return the size of the database without its journal, in bytes."""
    pages: int = db.execute("PRAGMA page_count").fetchone()[0]
    page_bytes: int = db.execute("PRAGMA page_size").fetchone()[0]
    return pages * page_bytes
