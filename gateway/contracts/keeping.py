"""What the store and the artifacts promise."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

import attrs

from gateway.contracts.paying import SettlementJournal
from gateway.contracts.refunding import RefundLedger
from gateway.domain import (
    Authorization,
    Endpoint,
    GenerationRequest,
    Payment,
    Result,
    StoredOutput,
    StoredResult,
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
class Lease:
    """The right to work on one task until `until`."""

    task_id: str
    token: str  # a result under another token is refused (fencing)
    slug: str
    request: GenerationRequest
    attempt: int
    until: float


class Store(AbstractAsyncContextManager["Store"], SettlementJournal, Protocol):
    """Everything durable. Each method is one transaction, durable when it returns."""

    @property
    def refunds(self) -> RefundLedger:
        """The part that keeps what is owed back."""
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
    ) -> Task | None:
        """T1: payment `reserved`, its claim, task `held`; None where `key` is claimed.

        Where another authorization has the Idempotency-Key, nothing is written, and its task
        is returned. Raises `IdempotencyConflict` where that is of another request.
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
    async def claim_tasks(self, limit: int, *, lease_s: float, now: float) -> list[Lease]:
        """T4: hand out the longest-due tasks; `attempt` counts this claim.

        A task neither completed, failed nor retried within `lease_s` seconds is due again:
        whoever held it has died.
        """
        ...

    async def complete(
        self, lease: Lease, result: StoredResult, *, expires_at: float, now: float
    ) -> bool:
        """T5: the result can be seen; False where the lease was lost."""
        ...

    async def fail(self, lease: Lease, *, details: str, error: str, now: float) -> bool:
        """T5: the task failed and its payment is owed back; False where the lease was lost."""
        ...

    async def retry(self, lease: Lease, *, due_at: float, costs_attempt: bool) -> bool:
        """Give a lease back, to be claimed again from `due_at`."""
        ...

    async def extend(self, lease: Lease, *, until: float, progress: float | None) -> bool:
        """Prolong a lease and note progress; False where the lease was lost."""
        ...

    async def recover_leases(self, *, now: float) -> int:
        """Make every leased task due now: at the start, whoever held one has died."""
        ...

    async def next_due(self) -> float | None:
        """Return when the next task is due, or None when none waits."""
        ...

    async def task(self, task_id: str) -> Task | None:
        """Return a task."""
        ...

    async def recent_tasks(self, limit: int, status: TaskStatus | None) -> list[Task]:
        """Return the newest tasks first, of one status or of all."""
        ...

    async def expired_outputs(
        self, *, now: float, limit: int
    ) -> list[tuple[str, list[StoredOutput]]]:
        """Return (task id, outputs) past their retention and not marked expired yet."""
        ...

    async def forget_outputs(self, task_ids: Sequence[str]) -> None:
        """Note that the outputs of these tasks are gone."""
        ...

    # -- the rest
    async def queue_depth(self) -> dict[str, int]:
        """Return how many unfinished tasks are in each status; cheap however many have ended."""
        ...

    async def counts(self) -> dict[str, dict[str, int]]:
        """Return how many `tasks` and `payments` are in each state."""
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

    async def count_attempt(self, address: str, *, limit: int, window_s: int, now: float) -> float:
        """Count a login attempt; returns 0, or the seconds to wait where it is one too many."""
        ...


class Artifacts(Protocol):
    """Keeps outputs and hands out signed, expiring links to them."""

    async def save(self, task_id: str, result: Result) -> StoredResult:
        """Write outputs durably, hashed; text becomes a Markdown output of its own."""
        ...

    def link(self, output: StoredOutput, *, expires_at: float) -> str:
        """Return a path under `/files/` that works until `expires_at`."""
        ...

    def open(self, key: str, *, expires: str, signature: str, now: float) -> Path:
        """Return the file behind a link.

        Raises `NotFound` for a wrong, expired or deleted one.
        """
        ...

    async def delete(self, outputs: Sequence[StoredOutput]) -> None:
        """Remove outputs; those already gone are fine."""
        ...
