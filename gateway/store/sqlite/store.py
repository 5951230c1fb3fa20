"""The SQLite store: one writer, and separate connections for reads."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

from gateway.contracts.store import CheckRow
from gateway.errors import SettingsError
from gateway.store.disk import (
    FOLDER_MODE,
    MAX_WAL_BYTES,
    create_private,
    cut_free_pages,
    empty_wal,
    full_disk,
    wal_bytes,
)
from gateway.store.plugin_functions import PluginOwner, Rests
from gateway.store.sql import PluginWork
from gateway.store.sql_store import SqlStore, SumReader
from gateway.store.sqlite import upgrade
from gateway.store.sqlite.connection import FetchingConnection, Reads, RowReads, ThreadConnection
from gateway.store.sqlite.migrations import migrate
from gateway.store.sqlite.plugin_connection import PluginConnection, connect_for_plugins
from gateway.store.sqlite.writer import Writer

Value = TypeVar("Value")


def _connect(path: Path) -> sqlite3.Connection:
    """Open the database so that commits survive a power cut."""
    db = sqlite3.connect(path, isolation_level=None, factory=FetchingConnection)
    try:
        # Takes effect only for a new database, before its first page is written.
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.execute("PRAGMA busy_timeout = 5000")
        db.execute("PRAGMA journal_mode = WAL")
        # NORMAL loses commits in a power cut.
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
        db.execute(f"PRAGMA journal_size_limit = {MAX_WAL_BYTES}")
    except sqlite3.Error:
        db.close()
        raise
    db.row_factory = sqlite3.Row
    return db


def _prepare(path: Path) -> None:
    path.parent.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
    # SQLite creates its side files with the mode of the database.
    with contextlib.suppress(FileExistsError):
        create_private(path)
    with contextlib.closing(_connect(path)) as db:
        upgrade.keep_before(db, path)
        migrate(db)


class _Sums:
    """Runs functions that only read, each on one snapshot of the database."""

    def __init__(self, connection: ThreadConnection) -> None:
        self._connection = connection

    async def run(self, function: Callable[[sqlite3.Connection], Value]) -> Value:
        """Call `function` with the connection, on the connection's thread."""
        return await self._connection.run(lambda db: _read_one_state(db, function))

    async def close(self) -> None:
        """Close the connection and end its thread."""
        await self._connection.close()


async def _open_sum_reader(path: Path) -> _Sums:
    """Open the database read-only, on its own thread."""

    def connect() -> sqlite3.Connection:
        address = f"file:{quote(str(path.absolute()))}?mode=ro"
        db = sqlite3.connect(address, uri=True, isolation_level=None)
        db.execute("PRAGMA busy_timeout = 5000")
        db.execute("PRAGMA query_only = ON")
        db.row_factory = sqlite3.Row
        return db

    connection = ThreadConnection(connect)
    await connection.open()
    return _Sums(connection)


def _read_one_state(
    db: sqlite3.Connection, function: Callable[[sqlite3.Connection], Value]
) -> Value:
    if db.in_transaction:
        return function(db)
    db.execute("BEGIN")
    try:
        return function(db)
    finally:
        db.execute("ROLLBACK")


class SqliteStore(SqlStore):
    """Everything durable, in one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rests = Rests()
        super().__init__()

    async def check_rows(self) -> list[CheckRow]:
        return [("database", self._check)]

    async def _check(self) -> str:
        async with self:
            await self.ping()
            payments = (await self.counts())["payments"]
        return f"writable, {sum(payments.values())} payments"

    async def __aenter__(self) -> Self:
        self._sums.begin()
        writer = ThreadConnection(partial(_connect, self._path))
        self._reader = ThreadConnection(partial(_connect, self._path))
        try:
            await asyncio.to_thread(_prepare, self._path)
            await writer.open()
            await self._reader.open()
            self._reads = Reads(self._reader)
            self._row_reads = RowReads(self._path, self._reads)
        except (OSError, sqlite3.DatabaseError) as error:
            await writer.close()
            await self._reader.close()
            raise full_disk(self._path.parent, error) or SettingsError(
                f"Cannot open the database in {self._path.parent} ({error}). "
                "Set a folder that the gateway can write to: GATEWAY_DATA_DIR=/data"
            ) from error
        # SQLite lets one connection write, and does not queue the others.
        turn = asyncio.Lock()
        self._plugin_writes = self._connect_for_plugins(turn)
        self._plugin_reads = self._connect_for_plugins(None)
        self._writer = Writer(writer, turn)
        self._writer.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._sums.close()
        await self._plugin_writes.close()
        await self._plugin_reads.close()
        # Queued writes may still read.
        await self._writer.close()
        self._row_reads.close()
        await self._reader.close()

    async def _write(
        self, function: Callable[..., Value], *arguments: object, **named: object
    ) -> Value:
        return await self._writer.run(lambda db: function(db, *arguments, **named))

    async def _short_read(
        self, function: Callable[..., Value], *arguments: object, **named: object
    ) -> Value:
        return await self._reads.run(lambda db: function(db, *arguments, **named))

    async def _read_row(
        self, function: Callable[..., Value], *arguments: object, **named: object
    ) -> Value:
        return await self._row_reads.run(lambda db: function(db, *arguments, **named))

    async def _long_read(
        self, function: Callable[..., Value], *arguments: object, **named: object
    ) -> Value:
        return await self._reader.run(lambda db: function(db, *arguments, **named))

    def _connect_for_plugins(self, write_turn: asyncio.Lock | None) -> PluginConnection:
        writes = write_turn is not None
        return PluginConnection(
            partial(connect_for_plugins, self._path, writes=writes),
            self._rests,
            write_turn=write_turn,
        )

    async def _run_for_plugin(self, owner: PluginOwner, work: PluginWork, *, writes: bool) -> Any:
        return await (self._plugin_writes if writes else self._plugin_reads).run(owner, work)

    async def _open_sums(self) -> SumReader:
        return await _open_sum_reader(self._path)

    @property
    def is_full(self) -> bool:
        return self._writer.is_full

    async def check_writable(self) -> None:
        await self.ping()
        await self._writer.try_room()

    async def give_back_space(self) -> None:
        is_cut = False
        while await self._writer.run_between_batches(cut_free_pages):
            is_cut = True
        # The file itself shrinks only at a checkpoint of the write-ahead log.
        if is_cut or wal_bytes(self._path) > MAX_WAL_BYTES:
            await self._writer.run_between_batches(empty_wal)
