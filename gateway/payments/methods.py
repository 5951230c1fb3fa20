"""The ways to pay by request header, and the choice between them.

The first verifier makes the 402; the others add their headers.
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
# The core settles signed authorizations; a payment method settles its own proofs.
WayToPay: TypeAlias = AuthorizationVerifier | PaymentMethod


class PaymentMethods:
    """The verifiers of signed authorizations, in order, and the methods with their own proofs."""

    def __init__(
        self,
        verifiers: Sequence[AuthorizationVerifier],
        methods: Sequence[PaymentMethod] = (),
    ) -> None:
        self.first = verifiers[0]
        self.by_name = {method.name: method for method in methods}
        self._further: tuple[WayToPay, ...] = (*verifiers[1:], *methods)
        self._headers = [
            (*split_header_name(name), way)
            for way in (self.first, *self._further)
            for name in way.header_names
        ]
        # Lower-case, as in ASGI. A request without any of them has no payment.
        self.header_names = frozenset(name.lower().encode() for name, _, _ in self._headers)
        # Whether quotes need a digest of the request body.
        self.binds_body = any(getattr(one, "binds_body", False) for one in verifiers)
        # Headers for CORS: those that other sites' pages may send, and may read.
        self.further_request_headers = tuple(
            dict.fromkeys(name for name, _, one in self._headers if one is not self.first)
        )
        self.further_answer_headers = tuple(
            dict.fromkeys(
                name for one in self._further for name in getattr(one, "answer_headers", ())
            )
        )

    def method_of(self, way: WayToPay) -> PaymentMethod | None:
        """Return the payment method, or None if `way` is a verifier."""
        return next((method for method in self.by_name.values() if method is way), None)

    @property
    def guides(self) -> list[str]:
        """The further ways' texts for /llms.txt."""
        return [one.guide for one in self._further if hasattr(one, "guide")]

    def payment_info(self, endpoint: Endpoint, name: str) -> list[Mapping[str, Any]]:
        """Return the further ways' members of `name` (`protocols` or `offers`) in OpenAPI."""
        made = [one.payment_info(endpoint) for one in self._further if hasattr(one, "payment_info")]
        return [member for info in made for member in info.get(name, ())]

    def is_paid(self, read: HeaderReader) -> bool:
        """Whether a request has a payment, valid or not."""
        # A generator would double the time, and each request for a price passes here.
        for name, scheme, _ in self._headers:  # noqa: SIM110
            if _value_of(read, name, scheme):
                return True
        return False

    def choose(self, read: HeaderReader) -> tuple[WayToPay, str] | None:
        """Return the way to pay and the payment in a request's headers, or None.

        If one way has two header names, the first counts. Raises `ValidationError` if there are
        payments of two ways.
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

        `refused` is the way whose payment was refused for `reason`; the 402 then has the members of
        its body too. Ways that sell nothing now add nothing.
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
    """Return a header's value without its scheme; None if either is missing."""
    value = read(name)
    if value is None or not scheme:
        return value
    given, _, rest = value.strip().partition(" ")
    return rest.strip() if given.lower() == scheme.lower() else None
