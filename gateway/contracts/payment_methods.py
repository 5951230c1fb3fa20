"""Payment methods with proofs that the core cannot read, such as prepaid vouchers.

The core follows the order of docs/payments.md: T1 stores payment, claim and proof, T2 stores
`settling`, only then is `settle` called, and T3 or TR stores its outcome. A crash or an error
leaves the payment open, and the core retries until the outcome is known.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import attrs
from attrs import validators

from gateway.contracts.payments import Challenge, Quote
from gateway.domain import Payment

MAX_PROOF_BYTES = 16_384
_TEXT: Any = validators.and_(
    validators.instance_of(str), validators.min_len(1), validators.max_len(200)
)


@attrs.frozen(kw_only=True)
class MethodProof:
    """A decoded payment header of a method.

    It is worth `value_units` and is used up as a whole. The price may be lower, but there is no
    change, and a refund is of the whole value.
    """

    # The single-use key, such as a voucher's serial: 1 to 200 of a-z, 0-9, `.`, `_` and `-`. The
    # core prefixes it with the method's name, so it cannot clash with another method's claims.
    key: str
    # The input of `settle`, 1 to `MAX_PROOF_BYTES` bytes. A repeat must have the same bytes, so
    # knowing the key alone is not enough. It is stored, so it must not contain a secret that is
    # worth more than this payment.
    data: bytes = attrs.field(repr=False)
    # 10⁻⁶ USDC.
    value_units: int
    # Who pays, in the method's own words, for the operator's pages; up to 200 characters.
    payer: str
    # Recipient of a refund in USDC; None: the operator names one.
    refund_to: str | None = None


@attrs.frozen(kw_only=True)
class MethodPayment:
    """One payment to settle; identical after a crash."""

    claim: str
    data: bytes = attrs.field(repr=False)
    value_units: int
    price_units: int
    # A claim is refused for any other task: a restored database may have lost its first task.
    task_id: str
    # Unix seconds of T1. Check validity as of this time: a restart may take long.
    reserved_at: float


@attrs.frozen(kw_only=True, eq=False, repr=False)
class OpenMethodPayment:
    """A payment whose outcome only its payment method knows."""

    payment: Payment
    method: str
    asked: MethodPayment


@attrs.frozen
class Taken:
    """The method took the money, now or in an earlier call."""

    # The receipt on the operator's pages, up to 200 characters.
    reference: str = attrs.field(validator=_TEXT)


@attrs.frozen
class Refused:
    """The method did not take the money and will never take it under this claim.

    A concurrent call must be refused as well. The claim stays used.
    """

    # The reason in the buyer's 402: words joined by `_`, up to 200 characters.
    reason: str = attrs.field(validator=_TEXT)


class PaymentMethod(Protocol):
    """A way to pay with proofs of its own.

    It may have three more attributes, as an `AuthorizationVerifier` has: `guide`,
    `answer_headers` and `payment_info`.
    """

    # The prefix of its claims, and its name in pages and books: 2 to 20 of a-z and 0-9, beginning
    # with a letter. `tx`, `auth`, `x402`, `direct` and `refund` are the core's.
    name: str
    # As in `AuthorizationVerifier`. No two methods or verifiers may have the same header.
    header_names: Sequence[str]

    def challenge(self, quote: Quote, reason: str | None, version: int) -> Challenge:
        """Return this method's part of a 402: headers, and members of the body.

        If a payment of this method was refused, `reason` is the method's own reason or the core's,
        such as `payment_already_used`, and must be in the body.
        """
        ...

    def read(self, header: str) -> MethodProof:
        """Decode a payment header after its scheme. Pure.

        Raises `PaymentRequired` if it is malformed. Anything that time or a setting may change
        belongs in `check`, because a repeated purchase is only read.
        """
        ...

    async def check(self, proof: MethodProof, quote: Quote, now: float) -> None:
        """Check whether the proof is valid now, without side effects.

        Raises `PaymentRequired` if it is not, and `ExecutionError` if that is unknown.
        """
        ...

    async def settle(self, payment: MethodPayment) -> Taken | Refused:
        """Take the money once for each claim; later calls return the same outcome.

        The claim belongs to its first task and is refused for any other. Two calls may run
        concurrently. Raises any exception if the outcome is unknown: the payment stays open, its
        task waits, the buyer never gets a 402, and the core retries.
        """
        ...

    def receipt_headers(self, proof: MethodProof, reference: str | None) -> Mapping[str, Any]:
        """Return headers of the 200; `reference` is None while the outcome is unknown."""
        ...


def claim_key(method: str, key: str) -> str:
    """Return the claim of a method's key, unique across methods and flows."""
    return f"{method}:{key}"
