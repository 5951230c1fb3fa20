"""Reads of one row by its key, on the event loop itself while the disk answers at once.

Such a read takes 15 µs; the way to the database's thread and back takes ten times as long. After a
slow read the thread reads for fifty times as long, so a bad disk takes 2 % of the loop's time.
"""

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from gateway.store.sqlite.reads import Read, Reads

Value = TypeVar("Value")

# A read that takes longer than this holds up every other request.
_SLOW_S = 0.02
_TIMES_IN_THREAD = 50
_MOST_IN_THREAD_S = 60.0
# SQLite's default is 2 MB. A row needs a few pages, and the system keeps the rest.
_CACHE_KB = 256


class RowReads:
    """Runs reads on a connection of the loop's thread, or hands them to `reads`."""

    def __init__(
        self, path: Path, reads: Reads, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._reads = reads
        self._clock = clock
        self._in_thread_until = float("-inf")
        self._db = _connect(path)

    async def run(self, read: Read[Value]) -> Value:
        """Return what a read returns; it sees every write that was answered before this call."""
        begun = self._clock()
        if begun < self._in_thread_until:
            return await self._reads.run(read)
        try:
            return read(self._db)
        except sqlite3.OperationalError:
            # Another process holds the file for a moment. The thread can wait for it, and raises
            # what does not pass.
            return await self._reads.run(read)
        finally:
            ended = self._clock()
            took_s = ended - begun
            if took_s > _SLOW_S:
                wait_s = min(took_s * _TIMES_IN_THREAD, _MOST_IN_THREAD_S)
                self._in_thread_until = ended + wait_s

    def close(self) -> None:
        """Close the connection."""
        self._db.close()


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    # The loop never waits for a lock.
    db.execute("PRAGMA busy_timeout = 0")
    db.execute("PRAGMA query_only = ON")
    db.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
    db.row_factory = sqlite3.Row
    return db
