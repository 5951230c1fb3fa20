"""The real schema and transactions on an in-memory SQLite database that survives each process."""

import contextlib
import functools
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from gateway.store import SqliteStore
from gateway.store.sqlite.connection import Reads
from gateway.store.sqlite.migrations import migrate
from gateway.store.sqlite.writer import Writer
from tests.proof.simulation.world import World


@functools.lru_cache(maxsize=8)
def image(relaxed: tuple[str, ...] = ()) -> bytes:
    """Return an empty database as bytes; `relaxed` is SQL that loosens the schema for a mutant."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate(db)
        for statement in relaxed:
            db.execute(statement)
        return db.serialize()


def open_database(world: World, relaxed: tuple[str, ...]) -> sqlite3.Connection:
    """Return a new database whose random bytes come from the history's random generator."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.deserialize(image(relaxed))
    db.execute("PRAGMA foreign_keys = ON")
    db.row_factory = sqlite3.Row
    db.create_function("randomblob", 1, world.dice.randbytes)
    return db


class InlineReader:
    """Replaces the reading `ThreadConnection`; its result comes a little later."""

    def __init__(self, db: sqlite3.Connection, life: Any) -> None:
        self._db = db
        self._life = life

    async def run(self, function: Callable[[sqlite3.Connection], Any]) -> Any:
        self._life.check()
        found = function(self._db)
        await self._life.hop()
        return found

    async def close(self) -> None:
        self._life.check()


class InlineWriter:
    """Replaces the writing `ThreadConnection`.

    A commit takes time, in which others read the old data. A process may die just before or after
    COMMIT.
    """

    def __init__(self, db: sqlite3.Connection, life: Any) -> None:
        self._db = db
        self._life = life

    async def run(self, function: Callable[[sqlite3.Connection], Any]) -> Any:
        await self._life.pause()
        outcome = function(self._db)
        await self._life.crash_point("committed, its answer not seen")
        await self._life.hop()
        return outcome

    async def close(self) -> None:
        self._life.check()


class InlineRowReads(Reads):
    """Replaces the loop's own connection; a read takes time, like on a slow disk."""

    def close(self) -> None:
        """Nothing was opened."""


class SimStore(SqliteStore):
    """The production store on a database that is already open."""

    def __init__(self, db: sqlite3.Connection, life: Any) -> None:
        super().__init__(Path("in-memory"))
        self._db = db
        self._life = life

    async def __aenter__(self) -> Self:
        self._reader = InlineReader(self._db, self._life)
        self._reads = Reads(self._reader)
        self._row_reads = InlineRowReads(self._reader)
        self._writer = Writer(InlineWriter(self._db, self._life))
        self._writer.start()
        # The simulated plugins have no functions of the database, so neither is opened.
        self._plugin_writes = self._plugin_reads = self._connect_for_plugins(None)
        return self

    async def note_wallet(self, wallet: str, now: float) -> None:  # type: ignore[override]
        """Note nothing: every life has the one wallet, and seeds would show other histories."""

    async def _open_sums(self) -> InlineReader:
        return InlineReader(self._db, self._life)

    async def give_back_space(self) -> None:
        """The database is in memory."""
