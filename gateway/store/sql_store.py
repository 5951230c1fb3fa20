"""The store over SQL: everything that SQLite and PostgreSQL have in common.

A subclass opens and closes the database, and runs functions on it (`_write`, `_read`, `_query`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from gateway.contracts import NewTask, SignedTransaction, UnsignedBatch, UnsignedTransaction
from gateway.contracts.nodes import NodeRecords, Wakes
from gateway.contracts.store import CheckRow, JobRecord, ReserveLimits
from gateway.domain import (
    Authorization,
    Payment,
    Receipt,
    StoredOutput,
    Task,
    TaskStatus,
    Transfer,
)
from gateway.settings import Settings
from gateway.store import batches, claims, meta, nonces, payments, tasks, texts
from gateway.store.events import SqlEvents
from gateway.store.method_payments import SqlMethodPayments
from gateway.store.nodes import Fitness, OneNode
from gateway.store.payers import SqlPayers
from gateway.store.refunds import SqlRefunds
from gateway.store.rows import PAYMENT_COLUMNS, SELECT_TASK, job_of, outputs_of, payment_of, task_of
from gateway.store.sql import Connection, Row, marks
from gateway.store.sums import SumReader, Sums
from gateway.store.tasks import SqlQueue

Value = TypeVar("Value")
_BY_ID = f"{SELECT_TASK} WHERE t.id = ?"
_BY_CLAIM = f"{SELECT_TASK} JOIN claims c ON c.payment_id = p.id WHERE c.key = ?"
_BY_IDEMPOTENCY_HASH = f"{SELECT_TASK} WHERE p.idempotency_hash = ?"


class SqlStore(AbstractAsyncContextManager["SqlStore"], ABC):
    """Everything durable. Each method is one durable write, or one read.

    Plugins use it as their `SettlementJournal`, which documents its methods in more detail.
    """

    # How nodes wake each other; None for a single process.
    wakes: Wakes | None = None

    def __init__(self, node: str | None = None) -> None:
        """Take `node`, this machine's name, if several share the database."""
        self.fitness = Fitness()
        self.nodes: NodeRecords = OneNode()
        self.queue = SqlQueue(self._write, self._query, self._read_row, node)
        self.refunds = SqlRefunds(self._write, self._rows)
        self.payers = SqlPayers(self._write, self._rows, self._query)
        self.methods = SqlMethodPayments(self._read, self._write)
        self.events = SqlEvents(self._write, self._rows, self._row, node)
        self._sums = Sums(self._open_sums)

    # -- before it is open

    @abstractmethod
    async def check_rows(self) -> Sequence[CheckRow]:
        """Return the rows of `gateway check` about the database, which is not open yet."""

    async def check_settings(self, settings: Settings) -> None:
        """Raise `SettingsError` if a gateway with these settings must not run on this database."""

    # -- running a function on the database's connection

    @abstractmethod
    async def _write(self, function: Callable[..., Value], *arguments: object) -> Value:
        """Run a function in a transaction, durable when this returns."""

    @abstractmethod
    async def _read(self, function: Callable[..., Value], *arguments: object) -> Value:
        """Run a short read, without waiting for a commit."""

    async def _read_row(self, function: Callable[..., Value], *arguments: object) -> Value:
        """Run a function that reads one row by key, or the first row of an index."""
        return await self._read(function, *arguments)

    @abstractmethod
    async def _query(self, function: Callable[..., Value], *arguments: object) -> Value:
        """Run a read that may take longer."""

    @abstractmethod
    async def _open_sums(self) -> SumReader:
        """Open the connection for sums; called at the first sum."""

    async def write(self, function: Callable[..., Value], *arguments: object) -> Value:
        """Return `function(db, *arguments)` in one transaction: for writes of plugins."""
        return await self._write(function, *arguments)

    async def read(self, function: Callable[..., Value], *arguments: object) -> Value:
        """Return `function(db, *arguments)`, which only reads: for reads of plugins."""
        return await self._query(function, *arguments)

    async def sum(self, function: Callable[..., Value], *arguments: object) -> Value:
        """Return `function(db, *arguments)`, a read that may take seconds.

        Its statements share one snapshot, and it blocks neither sales nor polls.
        """
        return await self._sums.run(lambda db: function(db, *arguments))

    async def _rows(self, sql: str, *parameters: object) -> list[Row]:
        return await self._query(_fetch_rows, sql, parameters)

    async def _row(self, sql: str, *parameters: object) -> Row | None:
        return await self._read_row(_fetch_row, sql, parameters)

    async def _find_task(self, sql: str, *parameters: object) -> Task | None:
        row = await self._row(sql, *parameters)
        return task_of(row) if row is not None else None

    # -- payments. In docs/payments.md `reserve` is T1, `begin_settling` T2, `settle` T3,
    # `accept_direct` T1' and `release` TR.

    async def find_claim(self, key: str) -> Task | None:
        """Return the task of the payment that claimed `key`, or None."""
        return await self._find_task(_BY_CLAIM, key)

    async def find_idempotent(self, idempotency_hash: str) -> Task | None:
        """Return the task with an Idempotency-Key, or None."""
        return await self._find_task(_BY_IDEMPOTENCY_HASH, idempotency_hash)

    async def find_direct(
        self, tx_hash: str, idempotency_key: str | None, request_hash: str
    ) -> Task | None:
        """Return the task that a transaction paid for, or None if the transaction is unused.

        Raises `TxAlreadyUsed` unless the request has the Idempotency-Key of the purchase, and
        `IdempotencyConflict` if it has that key but differs from the first request.
        """
        return await self._read_row(claims.find_direct, tx_hash, idempotency_key, request_hash)

    async def reserve(
        self,
        task: NewTask,
        authorization: Authorization,
        key: str,
        search_from_block: int,
        idempotency_hash: str | None = None,
        limits: ReserveLimits | None = None,
    ) -> Task | None:
        """Store the payment as `reserved` with its claim, and the task as `held`.

        Returns None, and writes nothing, if `key` is already claimed. If another authorization used
        the Idempotency-Key, writes nothing and returns the task of that authorization. Raises
        `IdempotencyConflict` if that task is for a different request, `PayerBusy` if the payer has
        too much open, and `ExecutionError` if files of held tasks reach their limit.
        """
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
        """Mark the payment `settling`, and record the signed transaction and its nonce.

        Returns the transaction to send. Pass no transaction if a facilitator sends it.
        """
        return await self._write(payments.begin_settling, payment_id, transaction, now)

    async def begin_batch(
        self, batch: UnsignedBatch, *, now: float
    ) -> tuple[SignedTransaction, Sequence[int]] | None:
        """Record one signed transaction for several payments, each `settling`.

        Returns the transaction and the ids of its payments, or None if fewer than two remain.
        """
        return await self._write(batches.begin_batch, batch, now)

    async def settle(self, payment_id: int, transfer: Transfer, *, now: float) -> bool:
        """Mark the payment `settled` with its transfer, and queue the task.

        Returns False if the payment is already closed.
        """
        return await self._write(payments.settle, payment_id, transfer, now)

    async def accept_direct(
        self,
        task: NewTask,
        tx_hash: str,
        transfers: Sequence[Transfer],
        idempotency_key: str | None,
        *,
        is_proven: bool = False,
    ) -> Task:
        """Store the claims, the payment as `settled` and the task as `queued`.

        Returns the earlier task for a retry, as `find_direct` does. The Idempotency-Key is scoped
        to the sender of the transfer. `is_proven` means that this sender signed the request. Raises
        `TxAlreadyUsed`, `InsufficientPayment`, `IdempotencyConflict`.
        """
        return await self._write(
            payments.accept_direct, task, tx_hash, transfers, idempotency_key, is_proven
        )

    async def release(self, payment_id: int, *, now: float) -> bool:
        """Mark the payment `released` and the task `dropped`, and free the Idempotency-Key.

        Returns False if the payment is already closed.
        """
        return await self._write(payments.release, payment_id, now)

    async def open_payments(self) -> list[Payment]:
        """Return the payments that only the chain can close, oldest first."""
        rows = await self._rows(
            f"""SELECT {PAYMENT_COLUMNS} FROM payments p
                WHERE p.state IN ('reserved', 'settling') AND p.method IS NULL
                ORDER BY p.id"""  # noqa: S608 - constants
        )
        return [payment_of(row) for row in rows]

    # -- signed transactions and nonces

    async def next_nonce(self, signer: str, chain_nonce: int) -> int:
        """Return the first nonce from `chain_nonce` on that the signer has not used."""
        return await self._write(nonces.next_nonce, signer, chain_nonce)

    async def add_replacement(self, payment_id: int, transaction: SignedTransaction) -> None:
        """Record a replacement with the same nonce and a higher fee, before it is sent.

        It settles the same payments as the first one.
        """
        await self._write(batches.add_replacement, payment_id, transaction)

    async def unmined_of(self, payment_id: int, *signers: str) -> SignedTransaction | None:
        """Return a payment's newest transaction of these keys that is not known to be mined."""
        return await self._read(nonces.unmined_of, payment_id, *signers)

    async def nonces_of(self, payment_id: int, *signers: str) -> int:
        """Return the number of nonces of these keys that a payment has used."""
        return await self._read(nonces.nonces_of, payment_id, *signers)

    async def waiting_of(self, signer: str, chain_nonce: int) -> int:
        """Return the number of nonces from `chain_nonce` on that the signer has used."""
        return await self._read(nonces.waiting_of, signer, chain_nonce)

    async def failed_gas(self, *, since: float) -> int:
        """Return the wei burned by failed settlements, except for causes proven to burn little."""
        return await self._read(nonces.failed_gas, since)

    async def unmined(self, signer: str) -> list[tuple[Payment, SignedTransaction]]:
        """Return (payment, newest transaction) per nonce not known to be mined, by nonce."""
        return await self._query(nonces.unmined, signer)

    async def mark_mined(self, signer: str, below_nonce: int) -> None:
        """Mark every nonce below `below_nonce` as mined, and the others as not mined."""
        await self._write(nonces.mark_mined, signer, below_nonce)

    async def undated(self, limit: int, skip: Collection[str]) -> list[str]:
        """Return the newest mined transactions without a known block time, except `skip`."""
        return await self._read(nonces.undated, limit, skip)

    async def note_mined(self, transaction: Receipt) -> None:
        """Record where one of the gateway's transactions was mined, and its cost."""
        await self._write(nonces.note_mined, transaction)

    # -- tasks

    async def task(self, task_id: str) -> Task | None:
        """Return a task, or None. A long text in its result is only described."""
        return await self._find_task(_BY_ID, task_id)

    async def text_part(self, task_id: str, number: int) -> bytes | None:
        """Return part `number` (from 0) of a task's long text, or None.

        The part is the inside of a JSON string, in UTF-8, at most 400 KB.
        """
        return await self._read(texts.read_part, task_id, number)

    async def recent_tasks(
        self, limit: int, status: TaskStatus | None, details: str | None = None
    ) -> list[Task]:
        """Return tasks, newest first, filtered by `status` and `details` (why a task failed)."""
        wanted = {"t.status": status, "t.details": details}
        given = {column: value for column, value in wanted.items() if value is not None}
        where = " AND ".join(["1 = 1", *(f"{column} = ?" for column in given)])
        sql = f"{SELECT_TASK} WHERE {where} ORDER BY t.created_at DESC, t.payment_id DESC LIMIT ?"
        return [task_of(row) for row in await self._rows(sql, *given.values(), limit)]

    async def jobs_of(self, task_ids: Sequence[str]) -> dict[str, JobRecord]:
        """Return the vendor jobs of tasks, by task id."""
        sql = f"""SELECT id, handle, sent_at, note, cost_micros, cost_source, provider, reason
            FROM tasks WHERE id IN ({marks(task_ids)})"""  # noqa: S608 - marks
        return {row["id"]: job_of(row) for row in await self._rows(sql, *task_ids)}

    async def expired_outputs(
        self, *, now: float, limit: int
    ) -> list[tuple[str, list[StoredOutput]]]:
        """Return (task id, outputs) past their retention and not yet marked as deleted."""
        sql = """SELECT id, result FROM tasks WHERE expires_at IS NOT NULL AND outputs_gone = 0
            AND expires_at <= ? ORDER BY expires_at LIMIT ?"""
        rows = await self._rows(sql, now, limit)
        return [(row["id"], outputs_of(row["result"])) for row in rows]

    async def forget_outputs(self, task_ids: Sequence[str]) -> None:
        """Mark the outputs of these tasks as deleted."""
        await self._write(tasks.forget_outputs, task_ids)

    async def shown_outputs(self, task_ids: Sequence[str]) -> set[str]:
        """Return the keys of all outputs that these tasks still have."""
        sql = f"""SELECT result FROM tasks WHERE id IN ({marks(task_ids)})
            AND outputs_gone = 0 AND result IS NOT NULL"""  # noqa: S608 - marks
        rows = await self._rows(sql, *task_ids)
        return {output.key for row in rows for output in outputs_of(row["result"])}

    # -- other

    async def counts(self) -> dict[str, dict[str, int]]:
        """Return the number of `tasks` and `payments` in each state."""

        async def count(sql: str) -> dict[str, int]:
            return {row[0]: row[1] for row in await self._rows(sql)}

        return {
            "tasks": await count("SELECT status, count(*) FROM tasks GROUP BY status"),
            "payments": await count("SELECT state, count(*) FROM payments GROUP BY state"),
        }

    @abstractmethod
    async def give_back_space(self) -> None:
        """Return the space of deleted rows and request files to the disk."""

    @property
    @abstractmethod
    def is_full(self) -> bool:
        """Whether a write failed because the disk was full, and none has succeeded since."""

    @abstractmethod
    async def check_writable(self) -> None:
        """Return once the writer responds and, if the disk was full, can write again.

        Raises `DiskFull` while the disk is full.
        """

    async def ping(self) -> None:
        """Return once the writer responds."""
        await self._write(lambda db: db.execute("SELECT 1").fetchone())

    async def known_meta(self, key: str) -> str | None:
        """Return a stored value, or None."""
        rows = await self._rows("SELECT value FROM meta WHERE key = ?", key)
        return rows[0][0] if rows else None

    async def meta(self, key: str, make: Callable[[], str]) -> str:
        """Return a stored value, storing the result of `make` at the first use."""
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
        """Count a login attempt. Returns 0, or the seconds until the next attempt is allowed.

        `total` is (limit over all addresses or None, its window in seconds). Refused attempts are
        not stored.
        """
        return await self._write(meta.count_login_attempt, address, limit, window_s, total, now)


def _fetch_rows(db: Connection, sql: str, parameters: Sequence[object]) -> list[Row]:
    return db.execute(sql, parameters).fetchall()


def _fetch_row(db: Connection, sql: str, parameters: Sequence[object]) -> Row | None:
    row: Row | None = db.execute(sql, parameters).fetchone()
    return row
