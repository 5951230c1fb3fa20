"""The ledger: the task for which each voucher was redeemed, in the plugin's own database."""

import asyncio
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

_SCHEMA = """CREATE TABLE IF NOT EXISTS redeemed (
    claim TEXT PRIMARY KEY,
    task_id TEXT NOT NULL,
    redeemed_at REAL NOT NULL  -- Unix seconds
) STRICT, WITHOUT ROWID"""
# How long to wait for another writer, such as a backup.
_BUSY_S = 10.0


class Ledger:
    """Gives each claim to the first task that asks for it, durably."""

    def __init__(self, path: Path, now: Callable[[], float]) -> None:
        self._path = path
        self._now = now
        # One thread at a time uses the connection; any thread may.
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None

    async def owner_of(self, claim: str, task_id: str) -> str:
        """Return the task that has the claim: this one, if no task had it before.

        The result is durable. After `sqlite3.Error` or `OSError` the claim may or may not be
        written.
        """
        return await asyncio.to_thread(self._write, claim, task_id)

    def _write(self, claim: str, task_id: str) -> str:
        with self._lock:
            db = self._opened()
            db.execute(
                "INSERT OR IGNORE INTO redeemed (claim, task_id, redeemed_at) VALUES (?, ?, ?)",
                (claim, task_id, self._now()),
            )
            row = db.execute("SELECT task_id FROM redeemed WHERE claim = ?", (claim,)).fetchone()
            return str(row[0])

    def _opened(self) -> sqlite3.Connection:
        """Return the connection; the first call creates the file, readable by its owner only."""
        if self._db is None:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
            db = sqlite3.connect(
                self._path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
            weakref.finalize(self, db.close)
            # FULL: a commit is on disk before it returns, even if the machine then crashes.
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            db.execute(_SCHEMA)
            self._db = db
        return self._db
