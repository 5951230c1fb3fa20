"""What the store keeps: payments, tasks, outputs, refunds."""

import enum

import attrs

from gateway.domain.onchain import Authorization

# Seconds past `validBefore`. A log that no endpoint shows by then does not exist.
LOG_LAG_S = 120

# Nobody can be paid there. It is the sender of money that was minted, and stands for the payer of a
# payment by a method.
NO_ADDRESS = "0x" + "0" * 40


class Flow(enum.StrEnum):
    """How a payment reached the gateway (spec §1)."""

    X402 = "x402"
    DIRECT = "direct"


class PaymentState(enum.StrEnum):
    """Where a payment stands. A trigger in the database enforces the legal changes."""

    # Claimed. The gateway has signed and sent nothing.
    RESERVED = "reserved"

    # The settlement may be on its way to the chain.
    SETTLING = "settling"

    # The transfer was seen on-chain.
    SETTLED = "settled"

    # It is proven that no transfer happened or can happen.
    RELEASED = "released"

    # The payment was settled, but its task failed.
    REFUND_DUE = "refund_due"
    REFUNDING = "refunding"
    REFUNDED = "refunded"
    REFUND_FAILED = "refund_failed"


class TaskStatus(enum.StrEnum):
    """Where a task stands. The API shows `held` as queued and `dropped` as failed."""

    # The task waits for its payment to settle.
    HELD = "held"
    QUEUED = "queued"

    # A worker has leased the task, or the task waits for its next attempt.
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"

    # The payment was released.
    DROPPED = "dropped"


@attrs.frozen(kw_only=True)
class StoredOutput:
    """One output in the output store."""

    # The path below the outputs folder.
    key: str
    media_type: str
    size_bytes: int
    sha256: str
    width: int | None = None
    height: int | None = None


@attrs.frozen(kw_only=True)
class LongText:
    """What a task's row holds of a text that is stored apart from it."""

    # `SqlStore.text_part` returns each.
    parts: int

    # Of all parts together.
    json_bytes: int
    chars: int


@attrs.frozen(kw_only=True)
class StoredResult:
    """The result that a completed task shows."""

    outputs: tuple[StoredOutput, ...] = ()

    # Of a task that the store returns, it is None where `long_text` describes it.
    text: str | None = attrs.field(default=None, repr=False)
    long_text: LongText | None = None


@attrs.frozen(kw_only=True)
class Payment:
    """One payment, as the store keeps it."""

    id: int
    flow: Flow
    state: PaymentState
    request_hash: str
    price_units: int
    payer: str

    # None in the direct flow.
    authorization: Authorization | None

    # No earlier block can hold the transfer of an x402 payment.
    search_from_block: int
    paid_tx: str | None
    paid_log_index: int | None
    paid_units: int | None

    # The endpoint that was bought.
    slug: str = ""

    # The task that was bought.
    task_id: str = attrs.field(default="", eq=False)

    # What took the money, if not USDC on the chain: the name of a payment method. Such a payment
    # has flow `direct`, and its `paid_tx` is no transaction.
    method: str | None = None

    @property
    def decided_by(self) -> int | None:
        """Unix seconds by which the chain says whether it was paid; None of a direct payment."""
        signed = self.authorization
        return None if signed is None else signed.valid_before + LOG_LAG_S


@attrs.frozen(kw_only=True)
class Refund:
    """Money due, or given back, for a task that failed."""

    state: PaymentState
    amount_units: int
    tx_hash: str | None


class Decision(enum.StrEnum):
    """What the operator decided about a refund."""

    APPROVED = "approved"
    REJECTED = "rejected"


@attrs.frozen(kw_only=True)
class RefundCase:
    """A refund with all that deciding about it and sending it takes. Times are Unix seconds."""

    task_id: str
    slug: str
    payment: Payment

    # Whether the payer signed the request, so that settings may refund automatically.
    payer_proven: bool
    amount_units: int
    recipient: str

    # Where it goes unless an operator names another address: the payer's, or, of a payment by a
    # method, the one that its proof names.
    own_recipient: str

    # Why the task failed.
    reason: str
    decision: Decision | None

    # Why the operator decided so.
    note: str | None

    # Why the refund is not sent yet, or why it failed.
    problem: str | None

    # The address of the refund key that signed the refund, or None before that.
    sender: str | None

    # The refund's transaction, or None until it is seen on-chain.
    tx_hash: str | None

    # No earlier block can hold the refund's transfer.
    search_from_block: int | None
    created_at: float
    updated_at: float

    @property
    def needs_address(self) -> bool:
        """Whether an operator must name the address that gets the money."""
        return self.recipient == NO_ADDRESS


@attrs.frozen(kw_only=True)
class Task:
    """One generation, as the store keeps it. Times are Unix seconds."""

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

    # Whether the outputs were deleted after their retention.
    outputs_gone: bool
    code: str | None
    error: str | None
    details: str | None
    payment: Payment
    refund: Refund | None

    @property
    def is_done(self) -> bool:
        """Whether the task will not change any more, except for a refund."""
        return self.status in (TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.DROPPED)
