"""What the wallet may spend in 24 hours, counted on disk.

An amount is counted before its payment is signed, and stays counted unless nothing was sent. So a
payment of unknown outcome counts as spent, also after a crash, and over all processes.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

from gateway_buyer.errors import NotBought
from gateway_buyer.terms import format_usdc

DAY_S = 86_400
# For how long a process waits for another one.
_LOCK_S = 10.0
_TABLE = """
CREATE TABLE IF NOT EXISTS spent (
    id INTEGER PRIMARY KEY, at REAL NOT NULL, units INTEGER NOT NULL CHECK (units > 0)
) STRICT
"""


@attrs.frozen(kw_only=True)
class Allowance:
    """The spending of one wallet."""

    file: Path
    per_day_units: int
    now: Callable[[], float] = time.time

    def reserve(self, units: int) -> int:
        """Count an amount as spent, durably, and return its number for `release`.

        Raises `NotBought` if that would be above the limit, or cannot be stored.
        """
        with self._transaction() as database:
            spent = self._sum(database)
            if spent + units > self.per_day_units:
                raise NotBought(self._explain_excess(spent, units))
            row = "INSERT INTO spent (at, units) VALUES (?, ?)"
            number = database.execute(row, (self.now(), units)).lastrowid
        return int(number or 0)

    def release(self, number: int) -> None:
        """Stop counting an amount of which no payment was sent."""
        with self._transaction() as database:
            database.execute("DELETE FROM spent WHERE id = ?", (number,))

    def check(self, units: int) -> None:
        """Raise `NotBought` if an amount is above what is left now."""
        spent = self.spent()
        if spent + units > self.per_day_units:
            raise NotBought(self._explain_excess(spent, units))

    def spent(self) -> int:
        """Return what was spent in the last 24 hours; raises `NotBought`."""
        with self._transaction() as database:
            return self._sum(database)

    def _sum(self, database: sqlite3.Connection) -> int:
        # After the clock was set back, later amounts still count.
        row = "SELECT coalesce(sum(units), 0) FROM spent WHERE at > ?"
        (units,) = database.execute(row, (self.now() - DAY_S,)).fetchone()
        return int(units)

    def _explain_excess(self, spent: int, units: int) -> str:
        return (
            f"This costs {format_usdc(units)} USDC, and {format_usdc(spent)} of the "
            f"{format_usdc(self.per_day_units)} USDC for 24 hours are spent. Nothing was signed. "
            "To allow more, the person restarts this server with a higher --per-day."
        )

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield the database within a write transaction, which no other process can enter."""
        try:
            with contextlib.closing(self._open()) as database:
                database.execute("BEGIN IMMEDIATE")
                yield database
                database.execute("COMMIT")
        except (OSError, sqlite3.Error) as error:
            raise NotBought(
                f"Nothing was signed: {self.file} cannot be used ({error}), and spending is "
                "counted there first. XDG_STATE_HOME names another folder."
            ) from None

    def _open(self) -> sqlite3.Connection:
        self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(self.file, os.O_RDWR | os.O_CREAT, 0o600))
        database = sqlite3.connect(self.file, timeout=_LOCK_S, isolation_level=None)
        # Also syncs the folder, so that a power cut loses no amount.
        database.execute("PRAGMA synchronous = EXTRA")
        database.execute(_TABLE)
        return database
