"""What the gateway writes down: payments, tasks, outputs, refunds."""

import enum

import attrs

from gateway.domain.onchain import Authorization


class Flow(enum.StrEnum):
    """How a payment reached us (spec §1)."""

    X402 = "x402"
    DIRECT = "direct"


class PaymentState(enum.StrEnum):
    """Where a payment stands; legal changes are enforced by a trigger in the database."""

    RESERVED = "reserved"  # claimed, nothing signed or sent by us
    SETTLING = "settling"  # may be on its way to the chain
    SETTLED = "settled"  # the transfer was seen on-chain
    RELEASED = "released"  # proven that no transfer happened or can happen
    REFUND_DUE = "refund_due"  # settled, but its task failed
    REFUNDING = "refunding"
    REFUNDED = "refunded"
    REFUND_FAILED = "refund_failed"


class TaskStatus(enum.StrEnum):
    """Where a task stands inside; callers see `held` as queued and `dropped` as failed."""

    HELD = "held"  # waits for its payment to settle
    QUEUED = "queued"
    PROCESSING = "processing"  # leased, or waiting for its next attempt
    COMPLETED = "completed"
    FAILED = "failed"
    DROPPED = "dropped"  # its payment turned out not to have happened


@attrs.frozen(kw_only=True)
class StoredOutput:
    """One output as kept by the gateway."""

    key: str  # path below the outputs folder
    media_type: str
    size_bytes: int
    sha256: str
    width: int | None = None
    height: int | None = None


@attrs.frozen(kw_only=True)
class StoredResult:
    """What a completed task shows."""

    outputs: tuple[StoredOutput, ...] = ()
    text: str | None = attrs.field(default=None, repr=False)


@attrs.frozen(kw_only=True)
class Payment:
    """One payment as recorded."""

    id: int
    flow: Flow
    state: PaymentState
    request_hash: str
    price_units: int
    payer: str
    authorization: Authorization | None  # x402 only
    search_from_block: int  # no earlier block can hold the transfer of an x402 payment
    paid_tx: str | None
    paid_log_index: int | None
    paid_units: int | None


@attrs.frozen(kw_only=True)
class Refund:
    """Money owed, or given back, for a task that failed."""

    state: PaymentState
    amount_units: int
    tx_hash: str | None


class Decision(enum.StrEnum):
    """What the operator said about a refund."""

    APPROVED = "approved"
    REJECTED = "rejected"


@attrs.frozen(kw_only=True)
class RefundCase:
    """A refund with everything that deciding about it and sending it takes."""

    task_id: str
    slug: str
    payment: Payment
    payer_proven: bool  # the payer signed: who sent the money may get it back unasked
    amount_units: int
    recipient: str
    reason: str  # why the task failed
    decision: Decision | None
    note: str | None  # why it was decided so
    problem: str | None  # why it is not sent yet, or failed
    sender: str | None  # the refund key's address, once signed
    tx_hash: str | None  # once it is on-chain
    search_from_block: int | None  # no earlier block can hold it
    created_at: float
    updated_at: float


@attrs.frozen(kw_only=True)
class Task:
    """One generation as recorded; times are Unix seconds."""

    id: str
    slug: str
    capability: str
    status: TaskStatus
    attempt: int
    progress: float | None
    created_at: float
    started_at: float | None
    completed_at: float | None
    expires_at: float | None
    result: StoredResult | None
    outputs_gone: bool  # past their retention and deleted
    code: str | None
    error: str | None
    details: str | None
    payment: Payment
    refund: Refund | None

    @property
    def is_done(self) -> bool:
        """Whether nothing more will happen to it, refunds aside."""
        return self.status in (TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.DROPPED)
