"""Payment verifiers and settlers, and the objects that the gateway passes to them."""

import functools
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import attrs
import msgspec

from gateway.contracts.chain import Chain
from gateway.contracts.providers import Clock
from gateway.domain import (
    Authorization,
    Endpoint,
    Payment,
    Transfer,
)
from gateway.domain.eip3009 import Network
from gateway.domain.refund_promise import RefundPromise
from gateway.errors import ChainUnavailable
from gateway.settings import Settings

# Current sales: by every way to pay; only by earlier transfers and payment methods; or none.
Selling: TypeAlias = Literal["everything", "transfers", "nothing"]


@attrs.frozen(kw_only=True)
class Quote:
    """The price of one request, its wallet and its network."""

    endpoint: Endpoint
    price_units: int
    # The address as the operator wrote it.
    wallet: str
    network: Network
    resource_url: str
    # Prices in earlier 402s that are still honoured after the operator changed the price.
    earlier_units: tuple[int, ...] = ()
    # The digest of the request's body as RFC 9530 writes it, `sha-256=:…:`. Empty for a request
    # without a body, and if no verifier has `binds_body`.
    body_digest: str = ""
    # The promise for a failed generation; None: the 402 does not mention refunds.
    refund: RefundPromise | None = None
    # Unless "everything", no authorization can be settled, and a challenge asks for none.
    selling: Selling = "everything"
    # The fallback that makes the order, chosen when the request was checked; None: `endpoint`.
    maker: Endpoint | None = None
    # Whether a fallback is chosen. Then offers of x402 v1 describe it, and each task names its
    # model.
    names_model: bool = False


@attrs.frozen(kw_only=True)
class Challenge:
    """The 402: a JSON body and headers."""

    body: Mapping[str, Any]
    headers: Mapping[str, str]

    @functools.cached_property
    def encoded(self) -> bytes:
        """The body as compact JSON, encoded once."""
        return msgspec.json.encode(self.body)


@attrs.frozen(kw_only=True)
class Proof:
    """A decoded, unchecked payment header: the claimed authorization and its signature.

    Verifiers may return a subclass with more fields.
    """

    authorization: Authorization
    # A key in the payment header that identifies repeats, like an Idempotency-Key.
    idempotency_key: str | None = None


class AuthorizationVerifier(Protocol):
    """One protocol of signed authorizations: its challenges, and the headers that answer them.

    A gateway has one or more, in an order. The first makes the 402. Every further one adds the
    headers of its challenge to that 402 and, if its own payment was refused, its body's members.

    Four more attributes are optional. `binds_body = True`: quotes have a `body_digest`. `guide`:
    a paragraph in /llms.txt about how to pay.
    `answer_headers`: names of its response headers, which browsers hide from pages of other sites
    unless CORS exposes them. `payment_info(endpoint)`: members for the lists `protocols` and
    `offers` of the endpoint's `x-payment-info` in /openapi.json, under these names.
    """

    # In order of preference. `Authorization: Payment` is the header Authorization with the scheme
    # Payment; `read` gets the rest of the value. No two verifiers may have the same header.
    header_names: Sequence[str]

    def challenge(self, quote: Quote, reason: str | None, version: int) -> Challenge:
        """Return the 402 for a quote; with `version` 1, the x402 v1 entry comes first.

        Unless `quote.selling` is "everything", the first verifier asks for no authorization, and
        further ones are not called.
        """
        ...

    def read(self, header: str) -> Proof:
        """Decode a payment header. Pure.

        Raises `PaymentRequired` with the standard reason, and `ValidationError` for a wrong
        `idempotency_key`.
        """
        ...

    def check_terms(self, proof: Any, quote: Quote, now: float) -> None:
        """Compare the proof from `read` with the quote. Pure.

        Checks amount, recipient and time window of the authorization, and any other terms in the
        header. Raises `PaymentRequired` with the standard reason.
        """
        ...

    async def check_chain(self, authorization: Authorization) -> bool:
        """Check the signature, and whether the chain would settle the authorization. Read-only.

        It must simulate the transfer: a settler may send it within a second without another
        simulation. Returns False if the nonce is spent; only the chain's logs show whether it paid
        us. Raises `PaymentRequired` with the standard reason, and `ChainUnavailable`.
        """
        ...

    def receipt_headers(self, proof: Any, payment: Payment) -> Mapping[str, str]:
        """Return the headers of the 200 that describe the settlement to the client."""
        ...


def split_header_name(name: str) -> tuple[str, str]:
    """Return header and scheme of one of `header_names`; an empty scheme matches any value."""
    header, _, scheme = name.partition(":")
    return header.strip(), scheme.strip()


class TransferVerifier(Protocol):
    """The direct flow: finds the transfers in a mined transaction that may pay."""

    async def find_transfers(
        self, tx_hash: str, *, floor_block: int, born_at: float, now: float
    ) -> list[Transfer]:
        """Return the USDC transfers to the wallet in a mined transaction, at least one.

        `floor_block` is the cutoff block. A transfer in a block up to `floor_block`, or mined
        before `born_at` (Unix seconds), may have paid for a task already and is refused.
        The store decides whether a transfer is still unused, and whether it suffices.
        Raises `TxNotFound`, `TxFailed`, `InvalidPayment`, `ChainUnavailable`.
        """
        ...


@attrs.frozen(kw_only=True, eq=False, repr=False)
class GasOfKey:
    """The last known balance of one of the gateway's keys, in wei."""

    address: str
    balance_wei: int
    # About how many settlements or refunds it pays for.
    calls: int


class Settler(Protocol):
    """Brings the transfer of a reserved x402 payment on-chain.

    `async def prepare(authorization)` is optional. It may read ahead what `check` and `submit` need
    while the chain checks the authorization, for five seconds at most. An error does not fail the
    sale. It promises nothing: `check` is only called if the authorization passed.
    """

    async def check_ready(self) -> None:
        """Raise `ExecutionError` if settling cannot work now, e.g. for want of gas."""
        ...

    async def check(self, authorization: Authorization, quote: Quote) -> None:
        """Check whether this authorization would be settled, before anything is recorded.

        Raises `PaymentRequired` with the standard reason if it would not be, and `ExecutionError`
        if that is unknown.
        """
        ...

    async def submit(self, payment: Payment) -> str | None:
        """Store the settlement (`begin_settling`), then send it.

        If called again for the same payment, it sends the same bytes.
        Returns the hash of the pending transaction, or None if nothing could be sent.
        Raises `ChainUnavailable` if the outcome of sending is unknown, and `NoFreeNonce` if nothing
        was signed because too many transactions of the key wait: then it is called again every
        0.2 s, later every second, and the chain is read only every few seconds.
        """
        ...

    async def tend(self) -> None:
        """Resend pending transactions; replace stuck ones. Called every few seconds."""
        ...

    async def close(self) -> None:
        """Stop background work. The next start resumes recorded settlements."""
        ...


@attrs.frozen(kw_only=True)
class SignedTransaction:
    """A transaction ready to be sent, with its hash."""

    signer: str
    nonce: int
    tx_hash: str
    raw: bytes = attrs.field(repr=False)
    # Both fees are in wei per gas.
    max_fee_wei: int
    max_priority_wei: int
    # Unix seconds.
    sent_at: float
    # How many payments it settles; set only when their failures are judged.
    payments: int = 1

    @property
    def most_wei(self) -> int:
        """The most wei that the transaction can cost: 10⁶ gas is our largest limit."""
        return self.max_fee_wei * 10**6


@attrs.frozen(kw_only=True)
class UnsignedTransaction:
    """A transaction that gets its nonce and signature in the write that records it.

    So the journal alone assigns nonces: no two payments share one, and a failed write leaves no
    gap.
    """

    signer: str
    # The keys that may settle this payment, `signer` among them. An unmined transaction of any of
    # them is sent instead of a new one.
    signers: Sequence[str]
    # The signer's count of mined transactions: it has used every lower nonce.
    chain_nonce: int
    # How many nonces of these keys the payment had used up when its next call was simulated.
    used_nonces: int
    # The most unmined transactions of the signer; beyond that none is signed.
    most_waiting: int
    # Returns the signed transaction for a nonce. It runs within the write, so it must be fast and
    # do no I/O.
    sign: Callable[[int], SignedTransaction] = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class UnsignedBatch:
    """A transaction that settles several payments, and gets its nonce in the write like any other.

    That write also decides which of the payments are in it: those that are open, and for which no
    key has signed anything yet.
    """

    signer: str
    # As in `UnsignedTransaction`.
    signers: Sequence[str]
    chain_nonce: int
    most_waiting: int
    # The ids of the payments whose calls passed a simulation, in the order of the calls.
    payments: Sequence[int]
    # Returns the signed transaction for a nonce with the calls of these payments. It runs within
    # the write, so it must be fast and do no I/O.
    sign: Callable[[int, Sequence[int]], SignedTransaction] = attrs.field(repr=False)


class NoFreeNonce(ChainUnavailable):
    """Too many transactions of the signer are not mined yet."""

    def __init__(self, signer: str) -> None:
        super().__init__(f"Too many transactions of {signer} wait.")
        self.signer = signer


class SettlementJournal(Protocol):
    """The part of the store for the gateway's keys: their nonces and signed transactions."""

    async def next_nonce(self, signer: str, chain_nonce: int) -> int:
        """Return the signer's first unused nonce from `chain_nonce` on."""
        ...

    async def begin_settling(
        self,
        payment_id: int,
        transaction: SignedTransaction | UnsignedTransaction | None,
        *,
        now: float,
    ) -> SignedTransaction | None:
        """Store payment `settling`, the signed transaction and its used nonce.

        An unsigned transaction gets the first free nonce. Returns the transaction to send: this
        one, or the payment's unmined one if another submit was faster. Pass no transaction if a
        facilitator sends it. A payment that is `settling` already may get another transaction,
        after some other transaction used the first nonce.
        Raises `RuntimeError` if the payment is closed, or if the nonce is taken or another submit
        has used one since, and `NoFreeNonce` if the signer has too many pending transactions.
        """
        ...

    async def begin_batch(
        self, batch: UnsignedBatch, *, now: float
    ) -> tuple[SignedTransaction, Sequence[int]] | None:
        """Store one signed transaction of several payments, each `settling`.

        Returns the transaction and the ids of the payments that are in it; None, with nothing
        written, if fewer than two are left. Raises `NoFreeNonce` as `begin_settling` does.
        """
        ...

    async def add_replacement(self, payment_id: int, transaction: SignedTransaction) -> None:
        """Store a transaction with the same nonce, the same payments and a higher fee."""
        ...

    async def unmined_of(self, payment_id: int, *signers: str) -> SignedTransaction | None:
        """Return a payment's newest transaction by these keys whose nonce is not known as mined."""
        ...

    async def nonces_of(self, payment_id: int, *signers: str) -> int:
        """Return how many nonces of these keys a payment has used up."""
        ...

    async def waiting_of(self, signer: str, chain_nonce: int) -> int:
        """Return how many nonces in a row, from `chain_nonce` on, the signer has signed with."""
        ...

    async def failed_gas(self, *, since: float) -> int:
        """Return the wei that reverted settlements of accounts with code cost since `since`."""
        ...

    async def unmined(self, signer: str) -> list[tuple[Payment, SignedTransaction]]:
        """Return (payment, newest transaction) of each nonce not known to be mined, in order."""
        ...

    async def mark_mined(self, signer: str, below_nonce: int) -> None:
        """Note that every nonce below `below_nonce` is mined."""
        ...


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PluginContext:
    """The gateway's interface for payment plugins."""

    settings: Settings
    chain: Chain
    journal: SettlementJournal
    now: Clock
    # Returns an endpoint by slug, or None if it is no longer sold.
    find_endpoint: Callable[[str], Endpoint | None] = lambda _slug: None
    # Derives a secret of 64 hex digits for a purpose from the installation's: stable across
    # restarts and restores. It needs the open database, so verifiers get it; settlers get a random
    # one each time.
    derive_secret: Callable[[str], str] = attrs.field(
        default=lambda _purpose: secrets.token_hex(32), repr=False
    )
