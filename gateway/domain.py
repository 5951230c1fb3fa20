"""The nouns of the gateway: what is sold, who asked, what was paid, and what came of it."""

import enum
import hashlib
import json
from decimal import Decimal, InvalidOperation
from typing import Any

import attrs

USDC_DECIMALS = 6
MAX_FILE_BYTES = 7_500_000  # after Base64 decoding; spec §8 "about 7.5 MB"
MAX_PROMPT_CHARS = 10_000  # spec §8
MAX_ATTEMPTS = 4  # the first and three automatic retries, spec §8

ASPECT_RATIOS = ("1:1", "4:3", "3:4", "16:9", "9:16")  # spec §2.1
OUTPUT_FORMATS = ("png", "jpg", "webp")  # spec §2.1

TEXT_TO_IMAGE = "text-to-image"
DOCUMENT_PARSING = "document-parsing"


def usdc(amount: str) -> int:
    """Return a decimal USDC amount as units of 10⁻⁶ USDC: `usdc("0.02") == 20_000`.

    Raises `ValueError` for anything that is not a positive amount of at most 6 decimals.
    """
    try:
        units = Decimal(amount).scaleb(USDC_DECIMALS)
    except InvalidOperation:
        raise ValueError(f"{amount!r} is not a USDC amount such as 0.02") from None
    if not units.is_finite() or units <= 0 or units != units.to_integral_value():
        raise ValueError(f"{amount!r} is not a positive USDC amount of at most 6 decimals")
    return int(units)


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
class Choice:
    """The values a request field may take, and the one used where it is left out."""

    values: tuple[str, ...] = ()
    default: str | None = None

    def __attrs_post_init__(self) -> None:
        if self.default is not None and self.default not in self.values:
            raise ValueError(f"default {self.default!r} is not among {self.values}")


@attrs.frozen(kw_only=True)
class Endpoint:
    """What is for sale under one slug. All of it is checked before payment."""

    slug: str
    title: str
    description: str
    model: str
    provider: str
    capability: str
    price_units: int = attrs.field(validator=attrs.validators.gt(0))
    required_fields: tuple[str, ...] = ("prompt",)
    aspect_ratio: Choice = Choice()
    output_format: Choice = Choice()
    resolution: Choice = Choice()
    file_extensions: tuple[str, ...] = ()  # lower-case with the dot; empty: takes no file
    timeout_s: float = 300.0  # of one attempt

    @property
    def takes_file(self) -> bool:
        """Whether a request may carry `fileBase64`."""
        return bool(self.file_extensions)


@attrs.frozen(kw_only=True)
class Attachment:
    """A file sent with a request."""

    name: str
    data: bytes = attrs.field(repr=lambda data: f"<{len(data)} bytes>")
    sha256: str = attrs.field(init=False)  # of the data, hex

    @sha256.default
    def _hash(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def extension(self) -> str:
        """The lower-case ending of the name with its dot, or an empty string."""
        _, dot, ending = self.name.rpartition(".")
        return f".{ending.lower()}" if dot else ""


@attrs.frozen(kw_only=True)
class GenerationRequest:
    """One checked request for one generation; defaults of the endpoint are filled in."""

    prompt: str = attrs.field(default="", repr=False)
    aspect_ratio: str | None = None
    output_format: str | None = None
    resolution: str | None = None
    attachment: Attachment | None = None

    def fingerprint(self, slug: str) -> str:
        """Return the SHA-256 (hex) that tells whether two requests ask for the same thing."""
        facts: dict[str, Any] = attrs.asdict(self, filter=attrs.filters.exclude("attachment"))
        facts["slug"] = slug
        if self.attachment is not None:
            facts["file"] = [self.attachment.name, self.attachment.sha256]
        canonical = json.dumps(facts, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(canonical.encode()).hexdigest()


@attrs.frozen(kw_only=True)
class Output:
    """One file a provider made."""

    data: bytes = attrs.field(repr=lambda data: f"<{len(data)} bytes>")
    media_type: str
    width: int | None = None  # pixels
    height: int | None = None


@attrs.frozen(kw_only=True)
class Result:
    """What a provider returns: files, or text, or both."""

    outputs: tuple[Output, ...] = ()
    text: str | None = attrs.field(default=None, repr=False)  # Markdown of a parsed document


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
class Block:
    """The head of a block: enough to pin reads to it."""

    number: int
    hash: str
    timestamp: int  # Unix seconds


@attrs.frozen(kw_only=True)
class Log:
    """One event of a transaction; hex in lower case."""

    address: str
    topics: tuple[str, ...]
    data: bytes
    index: int


@attrs.frozen(kw_only=True)
class Receipt:
    """A mined transaction."""

    tx_hash: str
    succeeded: bool
    block_number: int
    block_hash: str
    logs: tuple[Log, ...] = ()


@attrs.frozen(kw_only=True)
class Transfer:
    """One USDC transfer to the wallet, found in a mined transaction."""

    tx_hash: str
    log_index: int
    sender: str
    amount_units: int
    authorization_key: str | None = None  # set where an AuthorizationUsed log directly precedes it


@attrs.frozen(kw_only=True)
class Authorization:
    """An EIP-3009 `TransferWithAuthorization` somebody signed; hex in lower case."""

    sender: str
    recipient: str
    value_units: int
    valid_after: int  # Unix seconds
    valid_before: int
    nonce: str  # 32 bytes
    signature: bytes = attrs.field(repr=False)


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
    paid_units: int | None


@attrs.frozen(kw_only=True)
class Refund:
    """Money owed, or given back, for a task that failed."""

    state: PaymentState
    amount_units: int
    tx_hash: str | None


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
