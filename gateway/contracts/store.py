"""What the store promises."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import attrs

from gateway.contracts.payers import PayerRecords, ReserveLimits
from gateway.contracts.payments import SettlementJournal
from gateway.contracts.refunds import RefundLedger
from gateway.contracts.task_queue import TaskQueue
from gateway.domain import (
    Authorization,
    Endpoint,
    GenerationRequest,
    Handle,
    Payment,
    StoredOutput,
    Task,
    TaskStatus,
    Transfer,
)


@attrs.frozen(kw_only=True)
class NewTask:
    """What is written down about a task when it is accepted."""

    id: str
    endpoint: Endpoint
    request: GenerationRequest
    request_hash: str
    price_units: int
    created_at: float


@attrs.frozen(kw_only=True)
class JobRecord:
    """What the operator may want to know of a task's work at its provider."""

    handle: Handle | None  # of its job there
    sent_at: float | None  # its last submit; None also where that is sent again without harm
    note: str | None  # of its progress
    cost_micros: int | None  # 10⁻⁶ US dollars


class Store(AbstractAsyncContextManager["Store"], SettlementJournal, Protocol):
    """Everything durable. Each method is one transaction, durable when it returns."""

    @property
    def queue(self) -> TaskQueue:
        """The part that lanes work on."""
        ...

    @property
    def refunds(self) -> RefundLedger:
        """The part that keeps what is owed back."""
        ...

    @property
    def payers(self) -> PayerRecords:
        """The part that knows what payers have open, and what they made fail."""
        ...

    # -- payments; the names T1 … TR are those of docs/payments.md
    async def find_claim(self, key: str) -> Task | None:
        """Return the task of the payment that claimed `key`."""
        ...

    async def find_idempotent(self, idempotency_hash: str) -> Task | None:
        """Return the task that was accepted under an Idempotency-Key."""
        ...

    async def reserve(
        self,
        task: NewTask,
        authorization: Authorization,
        key: str,
        search_from_block: int,
        idempotency_hash: str | None = None,
        limits: ReserveLimits | None = None,
    ) -> Task | None:
        """T1: payment `reserved`, its claim, task `held`; None where `key` is claimed.

        Where another authorization has the Idempotency-Key, nothing is written, and its task
        is returned. Raises `IdempotencyConflict` where that is of another request, `PayerBusy`
        where the payer has too much open, and `ExecutionError` where held files fill their cap.
        """
        ...

    async def settle(self, payment_id: int, transfer: Transfer, *, now: float) -> bool:
        """T3: payment settled, task queued; False where the payment is closed already."""
        ...

    async def accept_direct(
        self,
        task: NewTask,
        tx_hash: str,
        transfers: Sequence[Transfer],
        idempotency_hash: str | None,
        *,
        is_proven: bool = False,
    ) -> Task:
        """T1': claims, payment settled, task queued; `is_proven`: the transfers' sender signed.

        Raises `TxAlreadyUsed`, `InsufficientPayment`, `IdempotencyConflict`.
        """
        ...

    async def release(self, payment_id: int, *, now: float) -> bool:
        """TR: payment released, task dropped; False where the payment is closed already.

        Its Idempotency-Key is free again.
        """
        ...

    async def open_payments(self) -> list[Payment]:
        """Return the payments whose outcome is unknown, oldest first."""
        ...

    # -- tasks
    async def task(self, task_id: str) -> Task | None:
        """Return a task."""
        ...

    async def recent_tasks(
        self, limit: int, status: TaskStatus | None, details: str | None = None
    ) -> list[Task]:
        """Return the newest tasks first: of one status, of one reason to fail, or all."""
        ...

    async def jobs_of(self, task_ids: Sequence[str]) -> dict[str, JobRecord]:
        """Return tasks' work at their providers."""
        ...

    async def expired_outputs(
        self, *, now: float, limit: int
    ) -> list[tuple[str, list[StoredOutput]]]:
        """Return (task id, outputs) past their retention and not marked expired yet."""
        ...

    async def forget_outputs(self, task_ids: Sequence[str]) -> None:
        """Note that the outputs of these tasks are gone."""
        ...

    async def shown_outputs(self, task_ids: Sequence[str]) -> set[str]:
        """Return the keys of all outputs that these tasks show."""
        ...

    # -- the rest
    async def counts(self) -> dict[str, dict[str, int]]:
        """Return how many `tasks` and `payments` are in each state."""
        ...

    async def give_back_space(self) -> None:
        """Give the disk what deleted rows and files of requests took."""
        ...

    async def ping(self) -> None:
        """Return when the writer answers."""
        ...

    async def known_meta(self, key: str) -> str | None:
        """Return a stored value, or None where none was made yet."""
        ...

    async def meta(self, key: str, make: Callable[[], str]) -> str:
        """Return a stored value, made and kept at its first use."""
        ...

    async def count_attempt(
        self,
        address: str,
        *,
        limit: int,
        window_s: int,
        total: tuple[int | None, int] = (None, 0),
        now: float,
    ) -> float:
        """Count a login attempt; returns 0, or the seconds to wait where it is one too many.

        `total`: the limit over all addresses, None for an attempt that it does not bind, and its
        window in seconds. What is refused is not written down.
        """
        ...
