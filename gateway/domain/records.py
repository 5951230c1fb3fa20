"""Records: data on the chain, and stored payments, tasks, outputs and refunds."""

import enum
import math

import attrs

# Seconds past `validBefore`. A log that no endpoint returns by then does not exist.
LOG_LAG_S = 600

# No key controls this address. Minted tokens come from it, and it is the placeholder payer of a
# payment by a method.
NO_ADDRESS = "0x" + "0" * 40


@attrs.frozen(kw_only=True)
class Block:
    """A block to which reads can be pinned."""

    number: int
    hash: str
    # Unix seconds. Base has five blocks a second, so five in a row share one.
    timestamp: int
    # Unix milliseconds, or None if the endpoint does not report them.
    timestamp_ms: int | None = attrs.field(default=None, eq=False)

    def may_precede(self, at: float) -> bool:
        """Whether the block may have been made at or before `at` (Unix seconds)."""
        return at >= (self.timestamp if self.timestamp_ms is None else self.timestamp_ms / 1000)

    def may_follow(self, at: float) -> bool:
        """Whether the block may have been made at or after `at` (Unix seconds)."""
        if self.timestamp_ms is None:
            return self.timestamp >= math.floor(at)
        return self.timestamp_ms / 1000 >= at


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Log:
    """One event of a transaction. Hex is in lower case."""

    address: str
    topics: tuple[str, ...]
    data: bytes
    index: int


@attrs.frozen(kw_only=True)
class Receipt:
    """The receipt of a transaction in a canonical block.

    Some nodes also return receipts of transactions that are in no block yet. Only
    `gateway.chain.decode.read_receipt` creates a `Receipt`, and it rejects those.
    """

    tx_hash: str
    succeeded: bool
    block: Block
    """The canonical block, as returned by the endpoint of the receipt."""
    logs: tuple[Log, ...] = ()
    gas_used: int | None = None
    """None if the endpoint does not report it."""
    fee_wei: int | None = None
    """The sender's gas cost including the L1 part, or None if the endpoint does not report it."""
    l1_fee_wei: int | None = None
    """The part of `fee_wei` for data on L1, or None if the chain reports none."""

    @property
    def block_number(self) -> int:
        """The number of the block."""
        return self.block.number

    @property
    def block_hash(self) -> str:
        """The hash of the block."""
        return self.block.hash

    @property
    def gas_wei(self) -> int | None:
        """The part of `fee_wei` for execution on L2, or None if the endpoint does not report it."""
        return None if self.fee_wei is None else self.fee_wei - (self.l1_fee_wei or 0)


@attrs.frozen(kw_only=True)
class Transfer:
    """One USDC transfer to the wallet, found in a mined transaction."""

    tx_hash: str
    log_index: int
    sender: str
    amount_units: int
    # The claim key of the authorization that this transfer used. Set if an `AuthorizationUsed` log
    # directly precedes the transfer.
    authorization_key: str | None = None
    # The receipt that contains the transfer.
    mined: Receipt | None = attrs.field(default=None, eq=False)


@attrs.frozen(kw_only=True)
class MinedTransfer:
    """One USDC transfer, from a search of the chain's logs."""

    tx_hash: str
    log_index: int
    block_number: int
    sender: str
    recipient: str
    amount_units: int


@attrs.frozen(kw_only=True)
class Authorization:
    """A signed EIP-3009 `TransferWithAuthorization`. Hex is in lower case."""

    sender: str
    recipient: str
    value_units: int
    # Both times are Unix seconds.
    valid_after: int
    valid_before: int
    # 32 bytes in hex.
    nonce: str
    signature: bytes = attrs.field(repr=False)


class Flow(enum.StrEnum):
    """How a payment reached the gateway (spec §1)."""

    X402 = "x402"
    DIRECT = "direct"


class PaymentState(enum.StrEnum):
    """State of a payment. A database trigger enforces the legal changes."""

    # Claimed. Nothing has been signed or sent.
    RESERVED = "reserved"
    # The settlement may have been sent.
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

    @property
    def is_open(self) -> bool:
        """Whether the outcome is unknown."""
        return self in (PaymentState.RESERVED, PaymentState.SETTLING)


# A note on a task's progress that begins with this is the gateway's, not a provider's.
OWN_NOTE = "\x1e"
# While the gateway's machine lacks memory for the task.
WAITS_FOR_MEMORY = f"{OWN_NOTE}waits for memory"


def show_note(note: str | None) -> str | None:
    """Return a stored note as the operator reads it."""
    return None if note is None else note.removeprefix(OWN_NOTE)


class TaskStatus(enum.StrEnum):
    """State of a task. The API shows `held` as queued and `dropped` as failed."""

    # Waiting for the payment to settle.
    HELD = "held"
    QUEUED = "queued"
    # Leased by a worker, or waiting for the next attempt.
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
    seconds: float | None = None


@attrs.frozen(kw_only=True)
class LongText:
    """The description in a task's row of a text stored separately."""

    # See `SqlStore.text_part`.
    parts: int
    # Of all parts together.
    json_bytes: int
    chars: int


@attrs.frozen(kw_only=True)
class StoredResult:
    """The result of a completed task."""

    outputs: tuple[StoredOutput, ...] = ()
    # None in a task from the store if `long_text` describes the text.
    text: str | None = attrs.field(default=None, repr=False)
    long_text: LongText | None = None


@attrs.frozen(kw_only=True)
class Payment:
    """One payment, as stored."""

    id: int
    flow: Flow
    state: PaymentState
    request_hash: str
    price_units: int
    payer: str
    # None in the direct flow.
    authorization: Authorization | None = None
    # The block from which nodes of the previous release search for the transfer of an x402 payment.
    search_from_block: int = 0
    paid_tx: str | None = None
    paid_log_index: int | None = None
    paid_units: int | None = None
    # The endpoint that was bought.
    slug: str = ""
    # The task that was bought.
    task_id: str = attrs.field(default="", eq=False)
    # The payment method, if not USDC on-chain. Such a payment has flow `direct`, and its `paid_tx`
    # is not a transaction.
    method: str | None = None
    # Hash of the request without the endpoint's defaults. None: of an earlier release.
    sent_hash: str | None = attrs.field(default=None, eq=False)
    # Whether the payer signed the request, so that it may be refunded automatically.
    payer_proven: bool = attrs.field(default=False, eq=False)

    @property
    def decided_by(self) -> int | None:
        """Unix seconds by which the chain shows the outcome; None for a direct payment."""
        signed = self.authorization
        return None if signed is None else signed.valid_before + LOG_LAG_S


class Decision(enum.StrEnum):
    """The operator's decision about a refund."""

    APPROVED = "approved"
    REJECTED = "rejected"


@attrs.frozen(kw_only=True)
class Refund:
    """Money due, or returned, for a failed task."""

    state: PaymentState
    amount_units: int
    tx_hash: str | None
    decision: Decision | None = None
    # For the operator: why the refund is delayed or failed.
    problem: str | None = None


@attrs.frozen(kw_only=True)
class RefundCase:
    """A refund with everything needed to decide and send it. Times are Unix seconds."""

    task_id: str
    slug: str
    payment: Payment
    # Whether the payer signed the request, so that it may be refunded automatically.
    payer_proven: bool
    amount_units: int
    recipient: str
    # The default recipient: the payer or, for a payment by a method, the address in its proof.
    own_recipient: str
    # Why the task failed.
    reason: str
    decision: Decision | None
    # The operator's reason.
    note: str | None
    # Why the refund is delayed or failed.
    problem: str | None
    # The refund key that signed the refund; None until then.
    sender: str | None
    # The refund's transaction; None until it is seen on-chain.
    tx_hash: str | None
    created_at: float
    updated_at: float

    @property
    def needs_address(self) -> bool:
        """Whether an operator must name the recipient."""
        return self.recipient == NO_ADDRESS


@attrs.frozen(kw_only=True)
class Task:
    """One generation, as stored. Times are Unix seconds."""

    id: str
    slug: str
    capability: str
    status: TaskStatus
    attempt: int = 0
    progress: float | None = None
    # Whether it waits for this machine's memory.
    waits_for_memory: bool = False
    created_at: float
    started_at: float | None = None
    completed_at: float | None = None
    expires_at: float | None = None
    result: StoredResult | None = None
    # Whether the outputs were deleted after their retention.
    outputs_gone: bool = False
    code: str | None = None
    error: str | None = None
    details: str | None = None
    payment: Payment
    refund: Refund | None = None
    # The fallback endpoint that makes it; None: `slug` does.
    made_by: str | None = None
    # The model, if its endpoint had a fallback when it was bought.
    made_model: str | None = None

    @property
    def is_done(self) -> bool:
        """Whether the task will not change any more, except for a refund."""
        return self.status in (TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.DROPPED)
