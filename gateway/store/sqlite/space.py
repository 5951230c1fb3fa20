"""Gives the disk back what deleted rows and request files took, while the gateway runs.

By itself SQLite keeps freed pages in its file, and a write-ahead log at the size it has grown to.
A volume that requests have filled would stay full after all of them are deleted.
"""

import sqlite3
from pathlib import Path

# SQLite lets the write-ahead log grow to about this size by itself.
MOST_WAL_BYTES = 4_000_000
# The next writes use these pages: about 1 MB.
_FREE_PAGES_KEPT = 256
# About 4 MB, so that no other write waits long.
_PAGES_AT_ONCE = 1_000
# SQLite's number for auto_vacuum = INCREMENTAL.
_INCREMENTAL = 2
_BUSY_MS = 100


def cut_free_pages(db: sqlite3.Connection) -> int:
    """Cut some free pages off the end of the file; returns how many, 0 where none is left.

    Call this outside of BEGIN and COMMIT. `executescript` runs the pragma to its end; `execute`
    would stop after one page.
    """
    free: int = db.execute("PRAGMA freelist_count").fetchone()[0]
    if free <= _FREE_PAGES_KEPT or db.execute("PRAGMA auto_vacuum").fetchone()[0] != _INCREMENTAL:
        return 0
    pages = min(free - _FREE_PAGES_KEPT, _PAGES_AT_ONCE)
    db.executescript(f"PRAGMA incremental_vacuum({pages})")
    return pages


def wal_bytes(path: Path) -> int:
    """Return the size of the write-ahead log; 0 where there is none."""
    wal = path.with_name(path.name + "-wal")
    return wal.stat().st_size if wal.exists() else 0


def empty_wal(db: sqlite3.Connection) -> None:
    """Move the write-ahead log into the database and cut it, unless a reader is in the way."""
    db.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
    try:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        db.execute("PRAGMA busy_timeout = 5000")
