"""Returns space of deleted rows and request files to the disk at runtime.

SQLite keeps freed pages in its file and never shrinks its write-ahead log. A volume filled by
requests would stay full after they are deleted.
"""

import sqlite3
from pathlib import Path

# SQLite checkpoints the write-ahead log at about this size.
MAX_WAL_BYTES = 4_000_000
# Kept for the next writes: about 1 MB.
_FREE_PAGES_KEPT = 256
# About 4 MB per step, so that other writes do not wait long.
_PAGES_AT_ONCE = 1_000
# The value of auto_vacuum = INCREMENTAL.
_INCREMENTAL = 2
_BUSY_MS = 100


def cut_free_pages(db: sqlite3.Connection) -> int:
    """Truncate some free pages at the end of the file. Returns how many, 0 when done.

    Call this outside a transaction. `executescript` runs the pragma to its end; `execute` would
    stop after one page.
    """
    free: int = db.execute("PRAGMA freelist_count").fetchone()[0]
    if free <= _FREE_PAGES_KEPT or db.execute("PRAGMA auto_vacuum").fetchone()[0] != _INCREMENTAL:
        return 0
    pages = min(free - _FREE_PAGES_KEPT, _PAGES_AT_ONCE)
    db.executescript(f"PRAGMA incremental_vacuum({pages})")
    return pages


def wal_bytes(path: Path) -> int:
    """Return the size of the write-ahead log, or 0 if it does not exist."""
    wal = path.with_name(path.name + "-wal")
    return wal.stat().st_size if wal.exists() else 0


def empty_wal(db: sqlite3.Connection) -> None:
    """Checkpoint and truncate the write-ahead log, unless a reader blocks it."""
    db.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
    try:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        db.execute("PRAGMA busy_timeout = 5000")
