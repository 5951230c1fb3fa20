"""What payment verifiers and settlers promise, and what they are given."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import attrs

from gateway.contracts.chain import Chain
from gateway.contracts.providers import Clock
from gateway.domain import (
    Authorization,
    Endpoint,
    Payment,
    Transfer,
)
from gateway.domain.eip3009 import Network
from gateway.settings import Settings


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
        """Compare scheme, network, asset, amount, recipient and time window; pure.

        Raises `PaymentRequired` with the standard reason.
        """
        ...

    async def check_chain(self, authorization: Authorization) -> bool:
        """Find out who signed, and whether the chain would settle it; writes nothing.

        Returns False where its nonce is spent already: whether for us, the chain's logs tell.
        Raises `PaymentRequired` with the standard reason.
        """
        ...

    def receipt_headers(self, proof: Proof, payment: Payment) -> Mapping[str, str]:
        """Return the headers of the 200 that tell the client its settlement."""
        ...


class TransferVerifier(Protocol):
    """The direct flow: finds in a mined transaction the transfers that may pay."""

    async def find_transfers(
        self, tx_hash: str, *, floor_block: int, born_at: float, now: float
    ) -> list[Transfer]:
        """Return the USDC transfers to the wallet in a mined transaction, at least one.

        Those of a block up to `floor_block`, or from before `born_at`, may be spent already.
        Whether they are still unclaimed, and whether they suffice, the store decides.
        Raises `TxNotFound`, `TxFailed`, `InvalidPayment`, `ChainUnavailable`.
        """
        ...


class Settler(Protocol):
    """Makes the transfer of a reserved x402 payment happen on-chain."""

    async def check_ready(self) -> None:
        """Raise `ExecutionError` where settling cannot work now, e.g. for want of gas."""
        ...

    async def check(self, authorization: Authorization, quote: Quote) -> None:
        """Ask whether this one would be settled, before anything is written down.

        Raises `PaymentRequired` with the standard reason where it would not, `ExecutionError`
        where nobody can tell now.
        """
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

    async def close(self) -> None:
        """Stop what still runs; what is written down is taken up at the next start."""
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

    @property
    def most_wei(self) -> int:
        """The most it can cost where no receipt says what it did; 10⁶ gas is our largest limit."""
        return self.max_fee_wei * 10**6


class SettlementJournal(Protocol):
    """The part of the store that keys of ours write: their nonces, and what they signed."""

    async def next_nonce(self, signer: str, chain_nonce: int) -> int:
        """Return the first nonce from `chain_nonce` on under which the signer signed nothing."""
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

    async def unmined_of(self, payment_id: int, signer: str) -> SignedTransaction | None:
        """Return a signer's newest transaction of a payment whose nonce is not seen used."""
        ...

    async def nonces_of(self, payment_id: int, signer: str) -> int:
        """Return how many nonces of a signer a payment has used up."""
        ...

    async def failed_gas(self, *, since: float) -> int:
        """Return the wei that settlements of accounts with code burned by reverting."""
        ...

    async def unmined(self, signer: str) -> list[tuple[Payment, SignedTransaction]]:
        """Return (payment, newest transaction) of every nonce not seen used, in order."""
        ...

    async def mark_mined(self, signer: str, below_nonce: int) -> None:
        """Note that every nonce below is used on-chain."""
        ...


@attrs.frozen(kw_only=True)
class PluginContext:
    """What the gateway hands to a payment plugin."""

    settings: Settings
    chain: Chain
    journal: SettlementJournal
    now: Clock
