"""The seams of the gateway: what a provider, a payment plugin, a chain and a store promise."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

import attrs

from gateway.domain import (
    Authorization,
    Block,
    Endpoint,
    GenerationRequest,
    Payment,
    Receipt,
    Result,
    StoredOutput,
    StoredResult,
    Task,
    Transfer,
)
from gateway.settings import Settings
from gateway.usdc import Network

Clock = Callable[[], float]
"""Returns Unix seconds; production passes `time.time`, tests what they like."""


# ------------------------------------------------------------------ providers


class Job(Protocol):
    """What a provider may know and tell about the attempt it works on."""

    task_id: str
    attempt: int  # 1 to 4
    endpoint: Endpoint

    async def progress(self, fraction: float) -> None:
        """Show in the task how far this attempt is, 0 to 1."""
        ...


class Provider(Protocol):
    """Generates. One object serves every endpoint it was registered with."""

    name: str

    async def validate(self, request: GenerationRequest, endpoint: Endpoint) -> None:
        """Refuse, before anybody pays, a request that is doomed; cheap, and writes nothing.

        Raises `InvalidInput` with a sentence for the caller.
        """
        ...

    async def submit(self, request: GenerationRequest, job: Job) -> Result:
        """Generate once.

        Raises `Transient` (one of the retries), `RateLimited` (waits, costs none),
        `InvalidInput` or `ContentPolicy` (fails at once). Anything else counts as transient.
        """
        ...


# ------------------------------------------------------------------- payments


@attrs.frozen(kw_only=True)
class Quote:
    """The price of one request, and where it is paid."""

    endpoint: Endpoint
    price_units: int
    wallet: str  # as the operator wrote it
    network: Network
    resource_url: str


@attrs.frozen(kw_only=True)
class Challenge:
    """The 402: a JSON body and headers."""

    body: Mapping[str, Any]
    headers: Mapping[str, str]


@attrs.frozen(kw_only=True)
class Proof:
    """A decoded payment header, unchecked: what the client says it signed, and the signature."""

    version: int  # of x402: 1 or 2
    scheme: str
    network: str
    asset: str | None  # v2 only, as are the two below
    amount: str | None
    pay_to: str | None
    authorization: Authorization


class AuthorizationVerifier(Protocol):
    """The X402 flow: challenges, and the signed authorizations that answer them."""

    header_names: Sequence[str]  # in order of preference

    def challenge(self, quote: Quote, reason: str | None, version: int) -> Challenge:
        """Return the 402 for a quote; `version` 1 puts what x402 v1 clients need first."""
        ...

    def read(self, header: str) -> Proof:
        """Decode a payment header; pure.

        Raises `PaymentRequired` with the standard reason.
        """
        ...

    def check_terms(self, proof: Proof, quote: Quote, now: float) -> None:
        """Compare scheme, network, asset, amount, recipient, time window and signature; pure.

        Raises `PaymentRequired` with the standard reason.
        """
        ...

    async def check_chain(self, authorization: Authorization) -> bool:
        """Ask the chain whether the authorization can be settled; writes nothing.

        Returns False where its nonce is spent already: whether for us, the chain's logs tell.
        Raises `PaymentRequired` with the standard reason.
        """
        ...

    def receipt_headers(self, proof: Proof, payment: Payment) -> Mapping[str, str]:
        """Return the headers of the 200 that tell the client its settlement."""
        ...


class TransferVerifier(Protocol):
    """The direct flow: finds in a mined transaction the transfers that may pay."""

    async def find_transfers(self, tx_hash: str, *, floor_block: int, now: float) -> list[Transfer]:
        """Return the USDC transfers to the wallet in a mined transaction, at least one.

        Whether they are still unclaimed, and whether they suffice, the store decides.
        Raises `TxNotFound`, `TxFailed`, `InvalidPayment`, `ChainUnavailable`.
        """
        ...


class Settler(Protocol):
    """Makes the transfer of a reserved x402 payment happen on-chain."""

    async def check_ready(self) -> None:
        """Raise `ExecutionError` where settling cannot work now, e.g. for want of gas."""
        ...

    async def submit(self, payment: Payment) -> str | None:
        """Write down (T2), then send; called again for the same payment it sends the same bytes.

        Returns the hash of the transaction to look for, or None where nothing could be sent.
        Raises `ChainUnavailable` where the outcome of sending is unknown.
        """
        ...

    async def tend(self) -> None:
        """Resend and, where stuck, replace what was sent earlier; called every few seconds."""
        ...


@attrs.frozen(kw_only=True)
class SignedTransaction:
    """A transaction ready to be sent; its hash is computed by ourselves."""

    signer: str
    nonce: int
    tx_hash: str
    raw: bytes = attrs.field(repr=False)
    max_fee_wei: int  # per gas
    max_priority_wei: int
    sent_at: float


class SettlementJournal(Protocol):
    """The part of the store a settler writes."""

    async def next_nonce(self, signer: str, chain_nonce: int) -> int:
        """Return the signer's next nonce, never below what the chain says."""
        ...

    async def begin_settling(
        self, payment_id: int, transaction: SignedTransaction | None, *, now: float
    ) -> None:
        """T2: payment `settling`, the signed transaction, its nonce used up.

        Also when an earlier transaction's nonce was used up by another. Raises `RuntimeError`
        where the payment is closed or the nonce was taken meanwhile.
        """
        ...

    async def add_replacement(self, payment_id: int, transaction: SignedTransaction) -> None:
        """Write down a dearer transaction of the same nonce before it is sent."""
        ...

    async def unmined_of(self, payment_id: int) -> SignedTransaction | None:
        """Return the newest transaction of a payment whose nonce is not seen used on-chain."""
        ...

    async def unmined(self, signer: str) -> list[tuple[Payment, SignedTransaction]]:
        """Return (payment, newest transaction) of every nonce not seen used, in order."""
        ...

    async def mark_mined(self, signer: str, below_nonce: int) -> None:
        """Note that every nonce below is used on-chain."""
        ...


class Chain(Protocol):
    """Base, as the gateway reads it. Every method raises `ChainUnavailable` without an answer."""

    async def start(self) -> None:
        """Connect and assert chain id and token domain; may be called again."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...

    async def head(self) -> Block:
        """Return the newest block."""
        ...

    async def block(self, block_hash: str) -> Block:
        """Return one block."""
        ...

    async def receipt(self, tx_hash: str) -> Receipt | None:
        """Return a mined transaction, or None where no endpoint knows one."""
        ...

    async def call(
        self, data: bytes, *, at: Block | None = None, sender: str | None = None
    ) -> bytes:
        """Call the token without a transaction.

        Raises `CallReverted` where the contract refuses.
        """
        ...

    async def authorization_logs(
        self, sender: str, nonce: str, *, from_block: int, to_block: int
    ) -> list[tuple[str, bool]]:
        """Return (transaction hash, was it used rather than cancelled) of a nonce's logs."""
        ...

    async def code(self, address: str) -> bytes:
        """Return an account's code; empty for one without."""
        ...

    async def gas_balance(self, address: str) -> int:
        """Return an account's wei."""
        ...

    async def transaction_count(self, address: str) -> int:
        """Return the nonce after an account's last mined transaction."""
        ...

    async def fees(self) -> tuple[int, int]:
        """Return (base fee of the next block, priority fee to bid), in wei per gas."""
        ...

    async def send(self, raw: bytes) -> None:
        """Broadcast; already known or already mined is fine.

        Raises `ChainUnavailable` where no endpoint took it.
        """
        ...


class CallReverted(Exception):
    """The contract refused a call; the message is its revert reason."""


# ---------------------------------------------------------------------- store


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

    # -- payments; the names T1 … TR are those of docs/payments.md
    async def find_claim(self, key: str) -> Task | None:
        """Return the task of the payment that claimed `key`."""
        ...

    async def find_idempotent(self, idempotency_hash: str) -> Task | None:
        """Return the task that was accepted under an Idempotency-Key."""
        ...

    async def reserve(
        self, task: NewTask, authorization: Authorization, key: str, search_from_block: int
    ) -> Task | None:
        """T1: payment `reserved`, its claim, task `held`; None where the key is claimed."""
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
    ) -> Task:
        """T1': claims, payment settled, task queued.

        Raises `TxAlreadyUsed`, `InsufficientPayment`, `IdempotencyConflict`.
        """
        ...

    async def release(self, payment_id: int, *, now: float) -> bool:
        """TR: payment released, task dropped; False where the payment is closed already."""
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


# -------------------------------------------------------------------- plugins


@attrs.frozen(kw_only=True)
class PluginContext:
    """What the gateway hands to a payment plugin."""

    settings: Settings
    chain: Chain
    journal: SettlementJournal
    now: Clock


@attrs.define
class Registered:
    """An endpoint on sale, with its provider and the plugin it came from."""

    endpoint: Endpoint
    provider: Provider
    plugin: str
