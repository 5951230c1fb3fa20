"""The store over SQL: what every database does alike, by functions of a connection.

A database's own store says how a function is run (`_write`, `_read`, `_query`), opens and closes.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from gateway.contracts import NewTask, SignedTransaction, UnsignedBatch, UnsignedTransaction
from gateway.contracts.fitness import Fitness
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
from gateway.store.method_payments import SqlMethodPayments
from gateway.store.nodes import OneNode, SqlNodes
from gateway.store.operators import SqlOperators
from gateway.store.operators.records import SumReader
from gateway.store.payer_records import SqlPayers
from gateway.store.refund_ledger import SqlRefunds
from gateway.store.rows import PAYMENT_COLUMNS, SELECT_TASK, job_of, outputs_of, payment_of, task_of
from gateway.store.sql import Connection, Row, marks
from gateway.store.task_queue import SqlQueue
from gateway.store.webhooks import SqlWebhooks

if TYPE_CHECKING:
    from gateway.store.provider_states import SqlProviderStates

Value = TypeVar("Value")
_BY_ID = f"{SELECT_TASK} WHERE t.id = ?"
_BY_CLAIM = f"{SELECT_TASK} JOIN claims c ON c.payment_id = p.id WHERE c.key = ?"
_BY_IDEMPOTENCY_HASH = f"{SELECT_TASK} WHERE p.idempotency_hash = ?"


class SqlStore(ABC):
    """Everything durable. Its subclasses implement `contracts.Store`."""

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
        self.webhooks = SqlWebhooks(self._write, self._rows, self._row)
        self.operators = SqlOperators(self._read, self._write, self._open_sums)

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
        """Open what an operator's sums are read from; the first sum calls this."""

    async def _rows(self, sql: str, *parameters: object) -> list[Row]:
        return await self._query(_fetch_rows, sql, parameters)

    async def _row(self, sql: str, *parameters: object) -> Row | None:
        return await self._read_row(_fetch_row, sql, parameters)

    async def _find_task(self, sql: str, *parameters: object) -> Task | None:
        row = await self._row(sql, *parameters)
        return task_of(row) if row is not None else None

    # -- payments

    async def find_claim(self, key: str) -> Task | None:
        return await self._find_task(_BY_CLAIM, key)

    async def find_idempotent(self, idempotency_hash: str) -> Task | None:
        return await self._find_task(_BY_IDEMPOTENCY_HASH, idempotency_hash)

    async def find_direct(
        self, tx_hash: str, idempotency_key: str | None, request_hash: str
    ) -> Task | None:
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

    async def begin_batch(
        self, batch: UnsignedBatch, *, now: float
    ) -> tuple[SignedTransaction, Sequence[int]] | None:
        return await self._write(batches.begin_batch, batch, now)

    async def settle(self, payment_id: int, transfer: Transfer, *, now: float) -> bool:
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
        return await self._write(
            payments.accept_direct, task, tx_hash, transfers, idempotency_key, is_proven
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
        await self._write(batches.add_replacement, payment_id, transaction)

    async def unmined_of(self, payment_id: int, *signers: str) -> SignedTransaction | None:
        return await self._read(nonces.unmined_of, payment_id, *signers)

    async def nonces_of(self, payment_id: int, *signers: str) -> int:
        return await self._read(nonces.nonces_of, payment_id, *signers)

    async def waiting_of(self, signer: str, chain_nonce: int) -> int:
        return await self._read(nonces.waiting_of, signer, chain_nonce)

    async def failed_gas(self, *, since: float) -> int:
        return await self._read(nonces.failed_gas, since)

    async def unmined(self, signer: str) -> list[tuple[Payment, SignedTransaction]]:
        return await self._query(nonces.unmined, signer)

    async def mark_mined(self, signer: str, below_nonce: int) -> None:
        await self._write(nonces.mark_mined, signer, below_nonce)

    async def undated(self, limit: int, skip: Collection[str]) -> list[str]:
        return await self._read(mined.undated, limit, skip)

    async def note_mined(self, transaction: Receipt) -> None:
        await self._write(mined.note_mined, transaction)

    # -- tasks

    async def task(self, task_id: str) -> Task | None:
        return await self._find_task(_BY_ID, task_id)

    async def text_part(self, task_id: str, number: int) -> bytes | None:
        return await self._read(texts.read_part, task_id, number)

    async def recent_tasks(
        self, limit: int, status: TaskStatus | None, details: str | None = None
    ) -> list[Task]:
        wanted = {"t.status": status, "t.details": details}
        given = {column: value for column, value in wanted.items() if value is not None}
        where = " AND ".join(["1 = 1", *(f"{column} = ?" for column in given)])
        sql = f"{SELECT_TASK} WHERE {where} ORDER BY t.created_at DESC, t.payment_id DESC LIMIT ?"
        return [task_of(row) for row in await self._rows(sql, *given.values(), limit)]

    async def jobs_of(self, task_ids: Sequence[str]) -> dict[str, JobRecord]:
        sql = f"""SELECT id, handle, sent_at, note, cost_micros, cost_source, provider, reason
            FROM tasks WHERE id IN ({marks(task_ids)})"""  # noqa: S608 - marks
        return {row["id"]: job_of(row) for row in await self._rows(sql, *task_ids)}

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
        sql = f"""SELECT result FROM tasks WHERE id IN ({marks(task_ids)})
            AND outputs_gone = 0 AND result IS NOT NULL"""  # noqa: S608 - marks
        rows = await self._rows(sql, *task_ids)
        return {output.key for row in rows for output in outputs_of(row["result"])}

    # -- the rest

    async def counts(self) -> dict[str, dict[str, int]]:
        async def count(sql: str) -> dict[str, int]:
            return {row[0]: row[1] for row in await self._rows(sql)}

        return {
            "tasks": await count("SELECT status, count(*) FROM tasks GROUP BY status"),
            "payments": await count("SELECT state, count(*) FROM payments GROUP BY state"),
        }

    async def ping(self) -> None:
        await self._write(lambda db: db.execute("SELECT 1").fetchone())

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


def _fetch_rows(db: Connection, sql: str, parameters: Sequence[object]) -> list[Row]:
    return db.execute(sql, parameters).fetchall()


def _fetch_row(db: Connection, sql: str, parameters: Sequence[object]) -> Row | None:
    row: Row | None = db.execute(sql, parameters).fetchone()
    return row
