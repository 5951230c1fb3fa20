"""The store over SQL: everything that SQLite and PostgreSQL have in common.

A subclass opens and closes the database, and runs functions on it (`_write`,
`_short_read`, `_long_read`).
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar

from gateway.concurrency.awaiting import outlive
from gateway.contracts.nodes import Fitness, NodeRecords, OneNode, Wakes
from gateway.contracts.store import CheckRow, JobRecord
from gateway.domain import (
    Payment,
    StoredOutput,
    Task,
    TaskStatus,
)
from gateway.settings import Settings
from gateway.store import (
    direct_payments,
    long_texts,
    nonces,
    payments,
    pending,
    reserved_amounts,
    tasks,
)
from gateway.store.events import SqlEvents
from gateway.store.meta import count_login_attempt, find_or_make, note_wallet
from gateway.store.method_payments import SqlMethodPayments
from gateway.store.payers import SqlPayers
from gateway.store.plugin_functions import PluginOwner, find_owner
from gateway.store.refunds import SqlRefunds
from gateway.store.rows import PAYMENT_COLUMNS, SELECT_TASK, job_of, outputs_of, payment_of, task_of
from gateway.store.sql import (
    Connection,
    PluginWork,
    Tables,
    as_long_read,
    as_row_read,
    as_short_read,
    as_write,
    placeholders,
)
from gateway.store.tasks import SqlQueue

Value = TypeVar("Value")
_BY_ID = f"{SELECT_TASK} WHERE t.id = ?"
_BY_CLAIM = f"{SELECT_TASK} JOIN claims c ON c.payment_id = p.id WHERE c.key = ?"
_BY_IDEMPOTENCY_HASH = f"{SELECT_TASK} WHERE p.idempotency_hash = ?"


class SumReader(Protocol):
    """A connection for functions that only read, and may take seconds."""

    async def run(self, function: Callable[[Connection], Any]) -> Any:
        """Call `function` with the connection, on one snapshot."""
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...


class Sums:
    """Opens the connection at the first sum, so it costs nothing before."""

    def __init__(self, open_reader: Callable[[], Awaitable[SumReader]]) -> None:
        self._open_reader = open_reader
        self._opening: asyncio.Future[SumReader] | None = None
        self._is_closed = False

    def begin(self) -> None:
        """Allow sums: the store is open."""
        self._is_closed = False

    async def run(self, function: Callable[[Connection], Value]) -> Value:
        """Return `function(db)` on one snapshot of the database.

        Raises `ValueError` once the store is closed: nothing would close the connection that a
        background task opens afterwards.
        """
        if self._is_closed:
            raise ValueError("The store is closed.")
        reader = await self._find_reader()
        value: Value = await reader.run(function)
        return value

    async def _find_reader(self) -> SumReader:
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open_reader())
        opening = self._opening
        try:
            return await outlive(opening)
        except Exception:
            # The next sum tries again.
            if self._opening is opening:
                self._opening = None
            raise

    async def close(self) -> None:
        """Close the connection, if it was opened."""
        self._is_closed = True
        opening, self._opening = self._opening, None
        if opening is not None:
            (reader,) = await asyncio.gather(opening, return_exceptions=True)
            if not isinstance(reader, BaseException):
                await reader.close()


class SqlStore(Tables, AbstractAsyncContextManager["SqlStore"], ABC):
    """Everything durable. Each method is one durable write, or one read.

    Plugins use it as their `SettlementJournal`, which documents its methods in more detail.
    """

    # How nodes wake each other; None for a single process.
    wakes: Wakes | None = None

    def __init__(self, node: str | None = None) -> None:
        """Take `node`, this machine's name, if several share the database."""
        self.fitness = Fitness()
        self.nodes: NodeRecords = OneNode()
        runs = (self._write, self._short_read, self._long_read, self._read_row)
        self.queue = SqlQueue(*runs, node=node)
        self.refunds = SqlRefunds(*runs)
        self.payers = SqlPayers(*runs)
        self.methods = SqlMethodPayments(*runs)
        self.events = SqlEvents(*runs, node=node, run_for_plugin=self._run_for_plugin)
        self._sums = Sums(self._open_sums)

    # -- before it is open

    @abstractmethod
    async def check_rows(self) -> Sequence[CheckRow]:
        """Return the rows of `gateway check` about the database, which is not open yet."""

    async def read_early(self, function: Callable[[Connection], Value]) -> Value | None:
        """Return `function(db)` before the store is open; None if it has no schema yet.

        A store that can read without migrating its schema does so. Raises `SettingsError`.
        """
        async with self:
            return await self._short_read(function)

    async def check_settings(self, settings: Settings) -> None:
        """Raise `SettingsError` if a gateway with these settings must not run on this database."""

    # -- running a function on the database's connection

    @abstractmethod
    async def _write(
        self, function: Callable[..., Value], *arguments: object, **named: object
    ) -> Value:
        """Run a function in a transaction, durable when this returns."""

    @abstractmethod
    async def _short_read(
        self, function: Callable[..., Value], *arguments: object, **named: object
    ) -> Value:
        """Run a short read, without waiting for a commit."""

    async def _read_row(
        self, function: Callable[..., Value], *arguments: object, **named: object
    ) -> Value:
        """Run a function that reads one row by key, or the first row of an index."""
        return await self._short_read(function, *arguments, **named)

    @abstractmethod
    async def _long_read(
        self, function: Callable[..., Value], *arguments: object, **named: object
    ) -> Value:
        """Run a read that may take longer."""

    @abstractmethod
    async def _open_sums(self) -> SumReader:
        """Open the connection for sums; called at the first sum."""

    @abstractmethod
    async def _run_for_plugin(self, owner: PluginOwner, work: PluginWork, *, writes: bool) -> Any:
        """Run a plugin's work in a transaction, within its rights and a time limit."""

    async def write(self, function: Callable[..., Value], *arguments: object) -> Value:
        """Return `function(db, *arguments)` in one transaction: for writes of plugins.

        A third party's function can use its own tables only. Raises `StoreUnavailable` if it does
        not return within three seconds.
        """
        return await self._run_fenced(function, arguments, writes=True)

    async def read(self, function: Callable[..., Value], *arguments: object) -> Value:
        """Return `function(db, *arguments)`, which only reads: for reads of plugins."""
        return await self._run_fenced(function, arguments, writes=False)

    async def _run_fenced(
        self, function: Callable[..., Value], arguments: Sequence[object], *, writes: bool
    ) -> Value:
        if (owner := find_owner(function)) is None:
            run = self._write if writes else self._long_read
            return await run(function, *arguments)
        value: Value = await self._run_for_plugin(
            owner, lambda _, handle: function(handle, *arguments), writes=writes
        )
        return value

    async def sum(self, function: Callable[..., Value], *arguments: object) -> Value:
        """Return `function(db, *arguments)`, a read that may take seconds.

        Its statements share one snapshot, and it blocks neither sales nor polls.
        """
        return await self._sums.run(lambda db: function(db, *arguments))

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

    find_direct = as_row_read(direct_payments.find_direct)
    reserve = as_write(payments.reserve)
    begin_settling = as_write(payments.begin_settling)
    begin_batch = as_write(nonces.begin_batch)
    settle = as_write(payments.settle)
    accept_direct = as_write(direct_payments.accept_direct)
    release = as_write(payments.release)
    find_amounts = as_short_read(reserved_amounts.find_amounts)
    find_first_block = as_short_read(reserved_amounts.find_first_block)
    reserve_amount = as_write(reserved_amounts.reserve_amount)

    async def open_payments(self) -> list[Payment]:
        """Return the payments that only the chain can close, oldest first."""
        rows = await self._rows(
            f"""SELECT {PAYMENT_COLUMNS} FROM payments p
                WHERE p.state IN ('reserved', 'settling') AND p.method IS NULL
                ORDER BY p.id"""  # noqa: S608 - constants
        )
        return [payment_of(row) for row in rows]

    # -- signed transactions and nonces

    next_nonce = as_write(nonces.next_nonce)
    add_replacement = as_write(nonces.add_replacement)
    unmined_of = as_short_read(nonces.unmined_of)
    sent_hashes = as_short_read(nonces.sent_hashes)
    nonces_of = as_short_read(nonces.nonces_of)
    waiting_of = as_short_read(nonces.waiting_of)
    failed_gas = as_short_read(nonces.failed_gas)
    unmined = as_long_read(nonces.unmined)
    mark_mined = as_write(nonces.mark_mined)
    undated = as_short_read(nonces.undated)
    note_mined = as_write(nonces.note_mined)

    # -- tasks

    async def task(self, task_id: str) -> Task | None:
        """Return a task, or None. A long text in its result is only described."""
        return await self._find_task(_BY_ID, task_id)

    text_part = as_short_read(long_texts.read_part)

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
            FROM tasks WHERE id IN ({placeholders(task_ids)})"""  # noqa: S608 - placeholders
        return {row["id"]: job_of(row) for row in await self._rows(sql, *task_ids)}

    async def expired_outputs(
        self, *, now: float, limit: int
    ) -> list[tuple[str, list[StoredOutput]]]:
        """Return (task id, outputs) past their retention and not yet marked as deleted."""
        sql = """SELECT id, result FROM tasks WHERE expires_at IS NOT NULL AND outputs_gone = 0
            AND expires_at <= ? ORDER BY expires_at LIMIT ?"""
        rows = await self._rows(sql, now, limit)
        return [(row["id"], outputs_of(row["result"])) for row in rows]

    forget_outputs = as_write(tasks.forget_outputs)

    async def shown_outputs(self, task_ids: Sequence[str]) -> set[str]:
        """Return the keys of all outputs that these tasks still have."""
        sql = f"""SELECT result FROM tasks WHERE id IN ({placeholders(task_ids)})
            AND outputs_gone = 0 AND result IS NOT NULL"""  # noqa: S608 - placeholders
        rows = await self._rows(sql, *task_ids)
        return {output.key for row in rows for output in outputs_of(row["result"])}

    # -- other

    find_pending = as_short_read(pending.find_pending)

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

    async def renew_connections(self) -> None:
        """Use new connections from now on, after this process stood still. SQLite has none."""

    async def ping(self) -> None:
        """Return once the writer responds."""
        await self._write(lambda db: db.execute("SELECT 1").fetchone())

    async def known_meta(self, key: str) -> str | None:
        """Return a stored value, or None."""
        rows = await self._rows("SELECT value FROM meta WHERE key = ?", key)
        return rows[0][0] if rows else None

    async def note_wallet(self, wallet: str, *, now: float) -> str | None:
        """Record the wallet of this start; return the one before, if it was another."""
        return await self._write(note_wallet, wallet, now)

    async def meta(self, key: str, make: Callable[[], str]) -> str:
        """Return a stored value, storing the result of `make` at the first use."""
        return await self._write(find_or_make, key, make())

    count_attempt = as_write(count_login_attempt)
