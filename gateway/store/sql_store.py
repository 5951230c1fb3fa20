"""The store over SQL: what every database does alike, by functions of a connection.

A database's own store says how a function is run (`_write`, `_read`, `_query`), opens and closes.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from gateway.contracts import NewTask, SignedTransaction, UnsignedBatch, UnsignedTransaction
from gateway.contracts.nodes import NodeRecords
from gateway.contracts.payers import ReserveLimits
from gateway.contracts.store import JobRecord
from gateway.contracts.wakes import Wakes
from gateway.domain import (
    Authorization,
    Payment,
    Receipt,
    StoredOutput,
    Task,
    TaskStatus,
    Transfer,
)
from gateway.store import batches, claims, meta, mined, nonces, payments, tasks, texts
from gateway.store.events import SqlEvents
from gateway.store.method_payments import SqlMethodPayments
from gateway.store.nodes import Fitness, OneNode, SqlNodes
from gateway.store.payers import SqlPayers
from gateway.store.refunds import SqlRefunds
from gateway.store.rows import PAYMENT_COLUMNS, SELECT_TASK, job_of, outputs_of, payment_of, task_of
from gateway.store.sql import Connection, Row, marks
from gateway.store.sums import SumReader, Sums
from gateway.store.tasks import SqlQueue

if TYPE_CHECKING:
    from gateway.store.provider_states import SqlProviderStates

Value = TypeVar("Value")
_BY_ID = f"{SELECT_TASK} WHERE t.id = ?"
_BY_CLAIM = f"{SELECT_TASK} JOIN claims c ON c.payment_id = p.id WHERE c.key = ?"
_BY_IDEMPOTENCY_HASH = f"{SELECT_TASK} WHERE p.idempotency_hash = ?"


class SqlStore(AbstractAsyncContextManager["SqlStore"], ABC):
    """Everything durable. Each method is one write, durable when it returns, or one read.

    It is the `SettlementJournal` of plugins, whose docstrings say more about its methods.
    """

    # How nodes on this database wake each other; None where one process has it for itself.
    wakes: Wakes | None = None

    def __init__(
        self, node: str | None = None, roles: Collection[str] = ("web", "worker", "signer")
    ) -> None:
        self.fitness = Fitness()
        self._node_name = node
        self.queue = SqlQueue(self._write, self._query, self._read_row, node)
        self.nodes: NodeRecords = (
            SqlNodes(self._read, self._write, node, self.fitness, roles)
            if node is not None
            else OneNode()
        )
        self.refunds = SqlRefunds(self._write, self._rows)
        self.payers = SqlPayers(self._write, self._rows, self._query)
        self.methods = SqlMethodPayments(self._read, self._write)
        self.events = SqlEvents(self._write, self._rows, self._row, node)
        self._sums = Sums(self._open_sums)

    @cached_property
    def provider_states(self) -> "SqlProviderStates":
        """What nodes tell each other about providers."""
        # A single machine has nobody to tell.
        from gateway.store.provider_states import SqlProviderStates  # noqa: PLC0415

        return SqlProviderStates(self._read, self._write, self._node_name)

    # -- how a database runs a function of its connection

    @abstractmethod
    async def _write(self, function: Callable[..., Value], *arguments: object) -> Value:
        """Run a function in a transaction; what it wrote is durable when this returns."""

    @abstractmethod
    async def _read(self, function: Callable[..., Value], *arguments: object) -> Value:
        """Run a short function that only reads; it waits for no commit."""

    async def _read_row(self, function: Callable[..., Value], *arguments: object) -> Value:
        """Run a function that reads one row by its key, or the first one of an index."""
        return await self._read(function, *arguments)

    @abstractmethod
    async def _query(self, function: Callable[..., Value], *arguments: object) -> Value:
        """Run a function that only reads and may take longer."""

    @abstractmethod
    async def _open_sums(self) -> SumReader:
        """Open what sums are read from; the first sum calls this."""

    async def write(self, function: Callable[..., Value], *arguments: object) -> Value:
        """Return `function(db, *arguments)` of one transaction: how plugins write their tables."""
        return await self._write(function, *arguments)

    async def read(self, function: Callable[..., Value], *arguments: object) -> Value:
        """Return `function(db, *arguments)`, which only reads: how plugins read their tables."""
        return await self._query(function, *arguments)

    async def sum(self, function: Callable[..., Value], *arguments: object) -> Value:
        """Return `function(db, *arguments)`, which may read for seconds.

        All its statements see one state, and neither sales nor polls wait for it.
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
        """Return the task that was accepted under an Idempotency-Key, or None."""
        return await self._find_task(_BY_IDEMPOTENCY_HASH, idempotency_hash)

    async def find_direct(
        self, tx_hash: str, idempotency_key: str | None, request_hash: str
    ) -> Task | None:
        """Return the task that a transaction paid for to a repeat; None if nothing was paid by it.

        A repeat has the Idempotency-Key of the first request. Raises `TxAlreadyUsed` for any other
        request, and `IdempotencyConflict` if that key is there with another request.
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
        """Write down payment `reserved`, its claim and task `held`.

        Returns None, and writes nothing, if `key` is claimed already. If another authorization has
        the Idempotency-Key, writes nothing and returns the task of that authorization.
        Raises `IdempotencyConflict` if that task is of another request, `PayerBusy` if the payer
        has too much open, and `ExecutionError` if held files fill their cap.
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
        """Write down payment `settling`, the signed transaction and its used-up nonce.

        Returns what is to be sent: this transaction, or the payment's unmined one if another submit
        was faster. Pass no transaction if a facilitator sends it.
        """
        return await self._write(payments.begin_settling, payment_id, transaction, now)

    async def begin_batch(
        self, batch: UnsignedBatch, *, now: float
    ) -> tuple[SignedTransaction, Sequence[int]] | None:
        """Write down one signed transaction of several payments, each `settling`.

        Returns the transaction and the ids of the payments that are in it; None, with nothing
        written, where fewer than two are left. Raises `ChainUnavailable` as `begin_settling` does.
        """
        return await self._write(batches.begin_batch, batch, now)

    async def settle(self, payment_id: int, transfer: Transfer, *, now: float) -> bool:
        """Write down payment `settled` with its transfer, and task `queued`.

        Returns False if the payment is closed already.
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
        """Write down the claims, payment `settled` and task `queued`.

        Returns the earlier task for a repeat, as `find_direct` does. The Idempotency-Key belongs to
        the sender of the transfer that pays.
        `is_proven` means that the sender of the transfers signed the request.
        Raises `TxAlreadyUsed`, `InsufficientPayment`, `IdempotencyConflict`.
        """
        return await self._write(
            payments.accept_direct, task, tx_hash, transfers, idempotency_key, is_proven
        )

    async def release(self, payment_id: int, *, now: float) -> bool:
        """Write down payment `released` and task `dropped`, and free the Idempotency-Key.

        Returns False if the payment is closed already.
        """
        return await self._write(payments.release, payment_id, now)

    async def open_payments(self) -> list[Payment]:
        """Return the payments whose outcome only the chain knows, oldest first."""
        rows = await self._rows(
            f"""SELECT {PAYMENT_COLUMNS} FROM payments p
                WHERE p.state IN ('reserved', 'settling') AND p.method IS NULL
                ORDER BY p.id"""  # noqa: S608 - constants
        )
        return [payment_of(row) for row in rows]

    # -- what the gateway's keys signed

    async def next_nonce(self, signer: str, chain_nonce: int) -> int:
        """Return the first nonce, from `chain_nonce` on, with which the signer signed nothing."""
        return await self._write(nonces.next_nonce, signer, chain_nonce)

    async def add_replacement(self, payment_id: int, transaction: SignedTransaction) -> None:
        """Write down a dearer transaction with the same nonce, before it is sent.

        It settles whatever payments the first one does.
        """
        await self._write(batches.add_replacement, payment_id, transaction)

    async def unmined_of(self, payment_id: int, *signers: str) -> SignedTransaction | None:
        """Return these keys' newest transaction of a payment whose nonce is not known as mined."""
        return await self._read(nonces.unmined_of, payment_id, *signers)

    async def nonces_of(self, payment_id: int, *signers: str) -> int:
        """Return how many nonces of these keys a payment has used up."""
        return await self._read(nonces.nonces_of, payment_id, *signers)

    async def waiting_of(self, signer: str, chain_nonce: int) -> int:
        """Return how many nonces, from `chain_nonce` on, the signer has signed with."""
        return await self._read(nonces.waiting_of, signer, chain_nonce)

    async def failed_gas(self, *, since: float) -> int:
        """Return the wei that reverted settlements of accounts with code cost since `since`."""
        return await self._read(nonces.failed_gas, since)

    async def unmined(self, signer: str) -> list[tuple[Payment, SignedTransaction]]:
        """Return (payment, newest transaction) of each nonce not known to be mined, in order."""
        return await self._query(nonces.unmined, signer)

    async def mark_mined(self, signer: str, below_nonce: int) -> None:
        """Note that every nonce below `below_nonce` is mined."""
        await self._write(nonces.mark_mined, signer, below_nonce)

    async def undated(self, limit: int, skip: Collection[str]) -> list[str]:
        """Return hashes of mined transactions whose block's time is not known, newest first.

        Those in `skip` are left out.
        """
        return await self._read(mined.undated, limit, skip)

    async def note_mined(self, transaction: Receipt) -> None:
        """Write down where one of the gateway's transactions was mined, and what it cost."""
        await self._write(mined.note_mined, transaction)

    # -- tasks

    async def task(self, task_id: str) -> Task | None:
        """Return a task, or None; of a long text its result has only the description."""
        return await self._find_task(_BY_ID, task_id)

    async def text_part(self, task_id: str, number: int) -> bytes | None:
        """Return a part of a task's long text, from 0: JSON without its quotes, in UTF-8.

        A part is at most 400 KB. Returns None for a part that there is not.
        """
        return await self._read(texts.read_part, task_id, number)

    async def recent_tasks(
        self, limit: int, status: TaskStatus | None, details: str | None = None
    ) -> list[Task]:
        """Return tasks, newest first; `status` and `details` (why a task failed) select some."""
        wanted = {"t.status": status, "t.details": details}
        given = {column: value for column, value in wanted.items() if value is not None}
        where = " AND ".join(["1 = 1", *(f"{column} = ?" for column in given)])
        sql = f"{SELECT_TASK} WHERE {where} ORDER BY t.created_at DESC, t.payment_id DESC LIMIT ?"
        return [task_of(row) for row in await self._rows(sql, *given.values(), limit)]

    async def jobs_of(self, task_ids: Sequence[str]) -> dict[str, JobRecord]:
        """Return the work of tasks at their providers, by task id."""
        sql = f"""SELECT id, handle, sent_at, note, cost_micros, cost_source, provider, reason
            FROM tasks WHERE id IN ({marks(task_ids)})"""  # noqa: S608 - marks
        return {row["id"]: job_of(row) for row in await self._rows(sql, *task_ids)}

    async def expired_outputs(
        self, *, now: float, limit: int
    ) -> list[tuple[str, list[StoredOutput]]]:
        """Return (task id, outputs) past their retention that are not marked expired yet."""
        sql = """SELECT id, result FROM tasks WHERE expires_at IS NOT NULL AND outputs_gone = 0
            AND expires_at <= ? ORDER BY expires_at LIMIT ?"""
        rows = await self._rows(sql, now, limit)
        return [(row["id"], outputs_of(row["result"])) for row in rows]

    async def forget_outputs(self, task_ids: Sequence[str]) -> None:
        """Write down that the outputs of these tasks are deleted."""
        await self._write(tasks.forget_outputs, task_ids)

    async def shown_outputs(self, task_ids: Sequence[str]) -> set[str]:
        """Return the keys of all outputs that these tasks show."""
        sql = f"""SELECT result FROM tasks WHERE id IN ({marks(task_ids)})
            AND outputs_gone = 0 AND result IS NOT NULL"""  # noqa: S608 - marks
        rows = await self._rows(sql, *task_ids)
        return {output.key for row in rows for output in outputs_of(row["result"])}

    # -- the rest

    async def counts(self) -> dict[str, dict[str, int]]:
        """Return how many `tasks` and `payments` are in each state."""

        async def count(sql: str) -> dict[str, int]:
            return {row[0]: row[1] for row in await self._rows(sql)}

        return {
            "tasks": await count("SELECT status, count(*) FROM tasks GROUP BY status"),
            "payments": await count("SELECT state, count(*) FROM payments GROUP BY state"),
        }

    @abstractmethod
    async def give_back_space(self) -> None:
        """Return the space of deleted rows and of requests' files to the disk."""

    @property
    @abstractmethod
    def is_full(self) -> bool:
        """Whether a write failed for want of room, and none was seen to succeed since."""

    @abstractmethod
    async def check_writable(self) -> None:
        """Return once the writer answers; where the disk was full, once it takes a write again.

        Raises `DiskFull` while the disk is full.
        """

    async def ping(self) -> None:
        """Return once the writer answers."""
        await self._write(lambda db: db.execute("SELECT 1").fetchone())

    async def known_meta(self, key: str) -> str | None:
        """Return a stored value, or None if it was not made yet."""
        rows = await self._rows("SELECT value FROM meta WHERE key = ?", key)
        return rows[0][0] if rows else None

    async def meta(self, key: str, make: Callable[[], str]) -> str:
        """Return a stored value. At the first use, `make` makes it and the store keeps it."""
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
        """Count a login attempt. Returns 0, or the seconds to wait if the attempt is one too many.

        `total` is (limit over all addresses, its window in seconds). A limit of None does not bind
        this attempt. A refused attempt is not written down.
        """
        return await self._write(meta.count_login_attempt, address, limit, window_s, total, now)


def _fetch_rows(db: Connection, sql: str, parameters: Sequence[object]) -> list[Row]:
    return db.execute(sql, parameters).fetchall()


def _fetch_row(db: Connection, sql: str, parameters: Sequence[object]) -> Row | None:
    row: Row | None = db.execute(sql, parameters).fetchone()
    return row
