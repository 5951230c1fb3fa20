"""What the store promises. The parts for refunds, payers and the queue have files of their own."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

import attrs

from gateway.contracts.fitness import Fitness
from gateway.contracts.method_records import MethodRecords
from gateway.contracts.nodes import NodeRecords
from gateway.contracts.operators import OperatorRecords
from gateway.contracts.payers import PayerRecords, ReserveLimits
from gateway.contracts.payments import SettlementJournal
from gateway.contracts.refunds import RefundLedger
from gateway.contracts.task_queue import TaskQueue
from gateway.contracts.wakes import Wakes
from gateway.contracts.webhooks import WebhookQueue
from gateway.domain import (
    Authorization,
    Endpoint,
    GenerationRequest,
    Handle,
    Payment,
    Receipt,
    StoredOutput,
    Task,
    TaskStatus,
    Transfer,
)

if TYPE_CHECKING:
    # A single machine does without.
    from gateway.contracts.provider_states import ProviderStates


@attrs.frozen(kw_only=True)
class NewTask:
    """What the store writes down about a task when its payment is accepted."""

    id: str
    endpoint: Endpoint
    request: GenerationRequest
    request_hash: str
    price_units: int
    created_at: float

    # Of the HTTP request that bought the task, as its log lines carry it.
    request_id: str = ""


@attrs.frozen(kw_only=True)
class JobRecord:
    """What the operator may want to know about a task's work at its provider."""

    # The handle of the task's job.
    handle: Handle | None

    # When the last submit began (Unix seconds). None if none was begun, or if sending it again
    # does no harm.
    sent_at: float | None

    # The provider's note on its progress.
    note: str | None

    # 10⁻⁶ US dollars, and how that is known: `told`, `set` or `table`.
    cost_micros: int | None
    cost_source: str | None = None

    # The vendor's account that generated; None in tasks of earlier releases.
    provider: str | None = None

    # Why the task failed, in the vendor's words.
    reason: str | None = None


class Store(AbstractAsyncContextManager["Store"], SettlementJournal, Protocol):
    """Everything durable. Each method is one write, durable when it returns, or one read."""

    @property
    def queue(self) -> TaskQueue:
        """The queue that workers take tasks from."""
        ...

    @property
    def refunds(self) -> RefundLedger:
        """The refunds that are due, on their way, paid or failed."""
        ...

    @property
    def payers(self) -> PayerRecords:
        """What payers have open, and which settlements they made fail."""
        ...

    @property
    def methods(self) -> MethodRecords:
        """Payments by methods whose proofs the core cannot read."""
        ...

    @property
    def webhooks(self) -> WebhookQueue:
        """The events that buyers are still to be told."""
        ...

    @property
    def fitness(self) -> Fitness:
        """Whether this process may go on with the database."""
        ...

    @property
    def nodes(self) -> NodeRecords:
        """The machines on this database."""
        ...

    @property
    def provider_states(self) -> "ProviderStates":
        """What the machines on this database tell each other about providers."""
        ...

    @property
    def operators(self) -> OperatorRecords:
        """What operators read and do."""
        ...

    @property
    def wakes(self) -> Wakes | None:
        """How nodes on this database wake each other; None where one process has it for itself."""
        ...

    # -- payments. In docs/payments.md `reserve` is T1, `begin_settling` T2, `settle` T3,
    # `accept_direct` T1' and `release` TR.
    async def find_claim(self, key: str) -> Task | None:
        """Return the task of the payment that claimed `key`, or None."""
        ...

    async def find_idempotent(self, idempotency_hash: str) -> Task | None:
        """Return the task that was accepted under an Idempotency-Key, or None."""
        ...

    async def find_direct(
        self, tx_hash: str, idempotency_key: str | None, request_hash: str
    ) -> Task | None:
        """Return the task that a transaction paid for to a repeat; None if nothing was paid by it.

        A repeat has the Idempotency-Key of the first request. Raises `TxAlreadyUsed` for any other
        request, and `IdempotencyConflict` if that key is there with another request.
        """
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
        """Write down payment `reserved`, its claim and task `held`.

        Returns None, and writes nothing, if `key` is claimed already. If another authorization has
        the Idempotency-Key, writes nothing and returns the task of that authorization.
        Raises `IdempotencyConflict` if that task is of another request, `PayerBusy` if the payer
        has too much open, and `ExecutionError` if held files fill their cap.
        """
        ...

    async def settle(self, payment_id: int, transfer: Transfer, *, now: float) -> bool:
        """Write down payment `settled` with its transfer, and task `queued`.

        Returns False if the payment is closed already.
        """
        ...

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
        ...

    async def release(self, payment_id: int, *, now: float) -> bool:
        """Write down payment `released` and task `dropped`, and free the Idempotency-Key.

        Returns False if the payment is closed already.
        """
        ...

    async def open_payments(self) -> list[Payment]:
        """Return the payments whose outcome only the chain knows, oldest first."""
        ...

    # -- what the gas of the gateway's keys cost
    async def undated(self, limit: int, skip: Collection[str]) -> list[str]:
        """Return hashes of mined transactions whose block's time is not known, newest first.

        Those in `skip` are left out.
        """
        ...

    async def note_mined(self, transaction: Receipt) -> None:
        """Write down where one of the gateway's transactions was mined, and what it cost."""
        ...

    # -- tasks
    async def task(self, task_id: str) -> Task | None:
        """Return a task, or None; of a long text its result has only the description."""
        ...

    async def text_part(self, task_id: str, number: int) -> bytes | None:
        """Return a part of a task's long text, from 0: JSON without its quotes, in UTF-8.

        A part is at most 400 KB. Returns None for a part that there is not.
        """
        ...

    async def recent_tasks(
        self, limit: int, status: TaskStatus | None, details: str | None = None
    ) -> list[Task]:
        """Return tasks, newest first; `status` and `details` (why a task failed) select some."""
        ...

    async def jobs_of(self, task_ids: Sequence[str]) -> dict[str, JobRecord]:
        """Return the work of tasks at their providers, by task id."""
        ...

    async def expired_outputs(
        self, *, now: float, limit: int
    ) -> list[tuple[str, list[StoredOutput]]]:
        """Return (task id, outputs) past their retention that are not marked expired yet."""
        ...

    async def forget_outputs(self, task_ids: Sequence[str]) -> None:
        """Write down that the outputs of these tasks are deleted."""
        ...

    async def shown_outputs(self, task_ids: Sequence[str]) -> set[str]:
        """Return the keys of all outputs that these tasks show."""
        ...

    # -- the rest
    async def counts(self) -> dict[str, dict[str, int]]:
        """Return how many `tasks` and `payments` are in each state."""
        ...

    async def give_back_space(self) -> None:
        """Return the space of deleted rows and of requests' files to the disk."""
        ...

    async def ping(self) -> None:
        """Return once the writer answers."""
        ...

    @property
    def is_full(self) -> bool:
        """Whether a write failed for want of room, and none was seen to succeed since."""
        ...

    async def check_writable(self) -> None:
        """Return once the writer answers; where the disk was full, once it takes a write again.

        Raises `DiskFull` while the disk is full.
        """
        ...

    async def known_meta(self, key: str) -> str | None:
        """Return a stored value, or None if it was not made yet."""
        ...

    async def meta(self, key: str, make: Callable[[], str]) -> str:
        """Return a stored value. At the first use, `make` makes it and the store keeps it."""
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
        """Count a login attempt. Returns 0, or the seconds to wait if the attempt is one too many.

        `total` is (limit over all addresses, its window in seconds). A limit of None does not bind
        this attempt. A refused attempt is not written down.
        """
        ...
