"""The disk that the database takes: deleted rows and files give it back while it runs.

SQLite keeps freed pages in its file and a grown write-ahead log at its size, so a volume that
filled up with requests would stay full after all of them are gone.
"""

import sqlite3
from pathlib import Path

import structlog

MOST_WAL_BYTES = 4_000_000  # bytes; what SQLite lets it grow to by itself
_FREE_PAGES_KEPT = 256  # pages; about 1 MB that the next writes use
_PAGES_AT_ONCE = 1_000  # pages; about 4 MB, so that no other write waits long
_INCREMENTAL = 2  # SQLite's number for it
_BUSY_MS = 100  # milliseconds
_log = structlog.get_logger()


def make_shrinkable(db: sqlite3.Connection) -> None:
    """Convert a database that an older release made; without room for that it stays as it is."""
    if db.execute("PRAGMA auto_vacuum").fetchone()[0] == _INCREMENTAL:
        return
    try:
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.execute("VACUUM")
    except sqlite3.OperationalError as error:
        _log.warning("store.not_shrinkable", error=str(error))


def cut_free_pages(db: sqlite3.Connection) -> int:
    """Cut free pages off the end of the file, some at a time; returns how many.

    Outside of a transaction: only `executescript` steps through all of the pragma, `execute`
    stops after one page.
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
    """Move the write-ahead log into the database and cut it; a reader may keep us from it."""
    db.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
    try:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        db.execute("PRAGMA busy_timeout = 5000")
