"""The payment methods that use a request header, and the choice between them.

The first verifier makes the 402; every further one, and every method with proofs of its own, adds
its headers to it.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from gateway.contracts import AuthorizationVerifier, Challenge, Quote
from gateway.contracts.payment_methods import PaymentMethod
from gateway.contracts.payments import split_header_name
from gateway.domain import Endpoint
from gateway.errors import ValidationError

# Returns the value of a request header, or None.
HeaderReader = Callable[[str], str | None]
# The core settles authorizations; a payment method settles its own proofs.
WayToPay: TypeAlias = AuthorizationVerifier | PaymentMethod


class PaymentMethods:
    """The verifiers of one app, in their order, and the methods with proofs of their own."""

    def __init__(
        self,
        verifiers: Sequence[AuthorizationVerifier],
        methods: Sequence[PaymentMethod] = (),
    ) -> None:
        self.first = verifiers[0]
        # By the names of their claims.
        self.by_name = {method.name: method for method in methods}
        self._further: tuple[WayToPay, ...] = (*verifiers[1:], *methods)
        self._headers = [
            (*split_header_name(name), way)
            for way in (self.first, *self._further)
            for name in way.header_names
        ]
        # In lower case, as ASGI has them. A request without any of them carries no payment.
        self.header_names = frozenset(name.lower().encode() for name, _, _ in self._headers)
        # Whether quotes need the digest of the request's body.
        self.binds_body = any(getattr(one, "binds_body", False) for one in verifiers)
        # What pages of other sites may send and read because of the further ways.
        self.further_request_headers = tuple(
            dict.fromkeys(name for name, _, one in self._headers if one is not self.first)
        )
        self.further_answer_headers = tuple(
            dict.fromkeys(
                name for one in self._further for name in getattr(one, "answer_headers", ())
            )
        )

    def method_of(self, way: WayToPay) -> PaymentMethod | None:
        """Return a chosen way as a method; None if it is a verifier of signed authorizations."""
        return next((method for method in self.by_name.values() if method is way), None)

    @property
    def guides(self) -> list[str]:
        """The texts of /llms.txt about the further methods."""
        return [one.guide for one in self._further if hasattr(one, "guide")]

    def payment_info(self, endpoint: Endpoint, name: str) -> list[Mapping[str, Any]]:
        """Return the members that further methods add to `protocols` or `offers` in OpenAPI."""
        made = [one.payment_info(endpoint) for one in self._further if hasattr(one, "payment_info")]
        return [member for info in made for member in info.get(name, ())]

    def is_paid(self, read: HeaderReader) -> bool:
        """Whether a request has a payment, valid or not."""
        # A generator would double the time that each request for a price takes here.
        for name, scheme, _ in self._headers:  # noqa: SIM110
            if _value_of(read, name, scheme):
                return True
        return False

    def choose(self, read: HeaderReader) -> tuple[WayToPay, str] | None:
        """Return the way to pay that a request's headers choose, and the payment; None without one.

        Of two names of one way the first counts. Raises `ValidationError` for payments of two ways:
        it is unclear which of them to take.
        """
        chosen: tuple[str, WayToPay, str] | None = None
        for name, scheme, way in self._headers:
            value = _value_of(read, name, scheme)
            if not value:
                continue
            if chosen is None:
                chosen = name, way, value
            elif chosen[1] is not way:
                raise ValidationError(
                    f"The request has two payments, in the headers {chosen[0]} and {name}. Send "
                    "one of them; nothing was charged."
                )
        return None if chosen is None else chosen[1:]

    def _sells_by(self, quote: Quote, way: WayToPay) -> bool:
        if quote.selling == "transfers":
            return self.method_of(way) is not None
        return quote.selling == "everything"

    def challenge(
        self,
        quote: Quote,
        reason: str | None,
        version: int,
        refused: WayToPay | None = None,
    ) -> Challenge:
        """Return the 402 for a quote: the first verifier's, with the headers of the others.

        `refused` is the one whose payment was refused for `reason`. If it is a further one, the
        members of its body are added, too. A way by which nothing can be bought now adds nothing.
        """
        made = self.first.challenge(quote, reason, version)
        for way in filter(functools.partial(self._sells_by, quote), self._further):
            is_refused = way is refused
            added = way.challenge(quote, reason if is_refused else None, version)
            headers = dict(made.headers)
            for name, value in added.headers.items():
                headers[name] = f"{headers[name]}, {value}" if name in headers else value
            body = {**made.body, **added.body} if is_refused else made.body
            made = attrs.evolve(made, body=body, headers=headers)
        return made


def _value_of(read: HeaderReader, name: str, scheme: str) -> str | None:
    """Return a header's value without its scheme; None if header or scheme is missing."""
    value = read(name)
    if value is None or not scheme:
        return value
    given, _, rest = value.strip().partition(" ")
    return rest.strip() if given.lower() == scheme.lower() else None
