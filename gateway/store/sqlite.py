"""The store on SQLite: reads on one connection, every write through the one writer."""

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from gateway.contracts import NewTask, SignedTransaction, UnsignedTransaction
from gateway.contracts.payers import ReserveLimits
from gateway.contracts.store import JobRecord
from gateway.domain import (
    Authorization,
    Mined,
    Payment,
    StoredOutput,
    Task,
    TaskStatus,
    Transfer,
)
from gateway.errors import SettingsError
from gateway.private_files import FOLDER_MODE, create_private
from gateway.store import meta, mined, nonces, payments, space, tasks, upgrade
from gateway.store.connection import ThreadConnection
from gateway.store.method_payments import SqliteMethodPayments
from gateway.store.migrations import migrate
from gateway.store.operators import SqliteOperators
from gateway.store.operators.records import SumReader, open_sum_reader
from gateway.store.payer_records import SqlitePayers
from gateway.store.reads import Reads
from gateway.store.refund_ledger import SqliteRefunds
from gateway.store.rows import PAYMENT_COLUMNS, SELECT_TASK, job_of, outputs_of, payment_of, task_of
from gateway.store.task_queue import SqliteQueue
from gateway.store.webhooks import SqliteWebhooks
from gateway.store.writer import Writer

Value = TypeVar("Value")


def _connect(path: Path) -> sqlite3.Connection:
    """Open the database so that a COMMIT that returned survives a power cut."""
    db = sqlite3.connect(path, isolation_level=None)
    try:
        # This counts for a new database, before its first page. `_prepare` converts an older one.
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.execute("PRAGMA busy_timeout = 5000")
        db.execute("PRAGMA journal_mode = WAL")
        # NORMAL loses commits in a power cut.
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
        db.execute(f"PRAGMA journal_size_limit = {space.MOST_WAL_BYTES}")
    except sqlite3.Error:
        db.close()
        raise
    db.row_factory = sqlite3.Row
    return db


def _prepare(path: Path) -> None:
    """Make the folder and bring the schema up to date, before the connections are opened."""
    path.parent.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
    # SQLite gives the side files the mode of the database.
    with contextlib.suppress(FileExistsError):
        create_private(path)
    with contextlib.closing(_connect(path)) as db:
        upgrade.keep_before(db, path)
        migrate(db)
        space.make_shrinkable(db)


class SqliteStore:
    """Everything durable, in one file. Implements `contracts.Store`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.queue = SqliteQueue(self._write, self._rows)
        self.refunds = SqliteRefunds(self._write, self._rows)
        self.payers = SqlitePayers(self._write, self._rows)
        self.methods = SqliteMethodPayments(self._read, self._write)
        self.webhooks = SqliteWebhooks(self._write, self._rows)
        self.operators = SqliteOperators(self._read, self._write, self._open_sums)

    async def __aenter__(self) -> Self:
        writer = ThreadConnection(partial(_connect, self._path), 64)
        self._reader = ThreadConnection(partial(_connect, self._path), 64)
        try:
            await asyncio.to_thread(_prepare, self._path)
            await writer
            await self._reader
        except (OSError, sqlite3.DatabaseError) as error:
            await writer.close()
            raise SettingsError(
                f"The database in {self._path.parent} cannot be opened ({error}). "
                "Name a folder the gateway may write: GATEWAY_DATA_DIR=/data"
            ) from error
        self._reads = Reads(self._reader)
        self._writer = Writer(writer)
        self._writer.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.operators.close()
        await self._writer.close()
        await self._reader.close()

    async def _open_sums(self) -> SumReader:
        """Open the connection for an operator's sums; the first sum calls this."""
        return await open_sum_reader(self._path)

    async def _write(self, function: Callable[..., Value], *arguments: object) -> Value:
        return await self._writer.run(lambda db: function(db, *arguments))

    async def _read(self, function: Callable[..., Value], *arguments: object) -> Value:
        """Run a short function that only reads, beside the writer: it waits for no commit."""
        return await self._reads.run(lambda db: function(db, *arguments))

    async def _rows(self, sql: str, *parameters: object) -> list[sqlite3.Row]:
        return list(await self._reader.execute_fetchall(sql, parameters))

    async def _find_task(self, where: str, *parameters: object) -> Task | None:
        sql = f"{SELECT_TASK} {where}"
        row = await self._reads.run(lambda db: db.execute(sql, parameters).fetchone())
        return task_of(row) if row is not None else None

    # -- payments

    async def find_claim(self, key: str) -> Task | None:
        return await self._find_task("JOIN claims c ON c.payment_id = p.id WHERE c.key = ?", key)

    async def find_idempotent(self, idempotency_hash: str) -> Task | None:
        return await self._find_task("WHERE p.idempotency_hash = ?", idempotency_hash)

    async def reserve(
        self,
        task: NewTask,
        authorization: Authorization,
        key: str,
        search_from_block: int,
        idempotency_hash: str | None = None,
        limits: ReserveLimits | None = None,
    ) -> Task | None:
        return await self._write(
            payments.reserve, task, authorization, key, search_from_block, idempotency_hash, limits
        )

    async def begin_settling(
        self,
        payment_id: int,
        transaction: SignedTransaction | UnsignedTransaction | None,
        *,
        now: float,
    ) -> SignedTransaction | None:
        return await self._write(payments.begin_settling, payment_id, transaction, now)

    async def settle(self, payment_id: int, transfer: Transfer, *, now: float) -> bool:
        return await self._write(payments.settle, payment_id, transfer, now)

    async def accept_direct(
        self,
        task: NewTask,
        tx_hash: str,
        transfers: Sequence[Transfer],
        idempotency_hash: str | None,
        *,
        is_proven: bool = False,
    ) -> Task:
        return await self._write(
            payments.accept_direct, task, tx_hash, transfers, idempotency_hash, is_proven
        )

    async def release(self, payment_id: int, *, now: float) -> bool:
        return await self._write(payments.release, payment_id, now)

    async def open_payments(self) -> list[Payment]:
        rows = await self._rows(
            f"""SELECT {PAYMENT_COLUMNS} FROM payments p
                WHERE p.state IN ('reserved', 'settling') AND p.method IS NULL
                ORDER BY p.id"""  # noqa: S608 - constants
        )
        return [payment_of(row) for row in rows]

    # -- what the gateway's keys signed

    async def next_nonce(self, signer: str, chain_nonce: int) -> int:
        return await self._write(nonces.next_nonce, signer, chain_nonce)

    async def add_replacement(self, payment_id: int, transaction: SignedTransaction) -> None:
        await self._write(nonces.insert_transaction, payment_id, transaction)

    async def unmined_of(self, payment_id: int, *signers: str) -> SignedTransaction | None:
        return await self._read(nonces.unmined_of, payment_id, *signers)

    async def nonces_of(self, payment_id: int, *signers: str) -> int:
        return await self._read(nonces.nonces_of, payment_id, *signers)

    async def waiting_of(self, signer: str, chain_nonce: int) -> int:
        return await self._read(nonces.waiting_of, signer, chain_nonce)

    async def failed_gas(self, *, since: float) -> int:
        return await self._read(nonces.failed_gas, since)

    async def unmined(self, signer: str) -> list[tuple[Payment, SignedTransaction]]:
        return await self._reader.run(partial(nonces.unmined, signer=signer))

    async def mark_mined(self, signer: str, below_nonce: int) -> None:
        await self._write(nonces.mark_mined, signer, below_nonce)

    async def undated(self, limit: int, skip: Collection[str]) -> list[str]:
        return await self._read(mined.undated, limit, skip)

    async def note_mined(self, transaction: Mined) -> None:
        await self._write(mined.note_mined, transaction)

    # -- tasks

    async def task(self, task_id: str) -> Task | None:
        return await self._find_task("WHERE t.id = ?", task_id)

    async def recent_tasks(
        self, limit: int, status: TaskStatus | None, details: str | None = None
    ) -> list[Task]:
        where = "WHERE t.status = coalesce(?, t.status) AND t.details IS coalesce(?, t.details)"
        sql = f"{SELECT_TASK} {where} ORDER BY t.rowid DESC LIMIT ?"
        return [task_of(row) for row in await self._rows(sql, status, details, limit)]

    async def jobs_of(self, task_ids: Sequence[str]) -> dict[str, JobRecord]:
        sql = """SELECT id, handle, sent_at, note, cost_micros, cost_source, provider, reason
            FROM tasks
            WHERE id IN (SELECT value FROM json_each(?))"""
        return {row["id"]: job_of(row) for row in await self._rows(sql, json.dumps(task_ids))}

    async def expired_outputs(
        self, *, now: float, limit: int
    ) -> list[tuple[str, list[StoredOutput]]]:
        sql = """SELECT id, result FROM tasks WHERE expires_at IS NOT NULL AND outputs_gone = 0
            AND expires_at <= ? ORDER BY expires_at LIMIT ?"""
        rows = await self._rows(sql, now, limit)
        return [(row["id"], outputs_of(row["result"])) for row in rows]

    async def forget_outputs(self, task_ids: Sequence[str]) -> None:
        await self._write(tasks.forget_outputs, task_ids)

    async def shown_outputs(self, task_ids: Sequence[str]) -> set[str]:
        sql = """SELECT json_extract(o.value, '$.key')
            FROM tasks t, json_each(t.result, '$.outputs') o
            WHERE t.id IN (SELECT value FROM json_each(?)) AND t.outputs_gone = 0"""
        return {row[0] for row in await self._rows(sql, json.dumps(task_ids))}

    # -- the rest

    async def counts(self) -> dict[str, dict[str, int]]:
        async def count(sql: str) -> dict[str, int]:
            return {row[0]: row[1] for row in await self._rows(sql)}

        return {
            "tasks": await count("SELECT status, count(*) FROM tasks GROUP BY status"),
            "payments": await count("SELECT state, count(*) FROM payments GROUP BY state"),
        }

    async def give_back_space(self) -> None:
        is_cut = False
        while await self._writer.run_between_batches(space.cut_free_pages):
            is_cut = True
        # The file itself shrinks when the write-ahead log is moved into it.
        if is_cut or space.wal_bytes(self._path) > space.MOST_WAL_BYTES:
            await self._writer.run_between_batches(space.empty_wal)

    async def ping(self) -> None:
        await self._write(lambda db: db.execute("SELECT 1").fetchone())

    @property
    def is_full(self) -> bool:
        return self._writer.is_full

    async def check_writable(self) -> None:
        await self.ping()
        await self._writer.try_room()

    async def known_meta(self, key: str) -> str | None:
        rows = await self._rows("SELECT value FROM meta WHERE key = ?", key)
        return rows[0][0] if rows else None

    async def meta(self, key: str, make: Callable[[], str]) -> str:
        return await self._write(meta.find_or_make, key, make())

    async def count_attempt(
        self,
        address: str,
        *,
        limit: int,
        window_s: int,
        total: tuple[int | None, int] = (None, 0),
        now: float,
    ) -> float:
        return await self._write(meta.count_login_attempt, address, limit, window_s, total, now)
