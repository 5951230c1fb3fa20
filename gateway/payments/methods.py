"""The ways to pay by request header, and the choice between them.

The first verifier makes the 402; the others add their headers.
"""

import contextlib
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from gateway.concurrency.fence import Fence, Fenced
from gateway.contracts import AuthorizationVerifier, Challenge, Quote
from gateway.contracts.payment_methods import PaymentMethod
from gateway.contracts.payments import split_header_name
from gateway.domain import Endpoint
from gateway.errors import ExecutionError, ValidationError
from gateway.payments.way_values import (
    checked_challenge,
    checked_guide,
    checked_info,
    merged,
    owner_of,
)

Value = TypeVar("Value")
_MAX_CHECKED = 256
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
        fence: Fence | None = None,
    ) -> None:
        self.first = verifiers[0]
        self._fence = fence or Fence()
        # Checked 402s of the first verifier by id. It caches them, so they are checked once.
        self._checked: dict[int, Challenge] = {}
        self.by_name = {method.name: method for method in methods}
        self._further: tuple[WayToPay, ...] = (*verifiers[1:], *methods)
        self._headers = [
            (*split_header_name(name), way)
            for way in (self.first, *self._further)
            for name in way.header_names
        ]
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
        return list(
            self._ask("guide", lambda way: checked_guide(way.guide))  # type: ignore[union-attr]
        )

    def payment_info(self, endpoint: Endpoint, name: str) -> list[Mapping[str, Any]]:
        """Return the further ways' members of `name` (`protocols` or `offers`) in OpenAPI."""
        made = self._ask(
            "payment_info",
            lambda way: checked_info(way.payment_info(endpoint)),  # type: ignore[union-attr]
        )
        return [member for info in made for member in info.get(name, ())]

    def _ask(self, name: str, ask: Callable[[WayToPay], Value]) -> Iterable[Value]:
        """Yield an optional attribute of each further way, without those that fail."""
        for way in self._further:
            with contextlib.suppress(Fenced):
                if self._fence.run(owner_of(way), name, functools.partial(hasattr, way, name)):
                    yield self._fence.run(owner_of(way), name, functools.partial(ask, way))

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
                    "one of them."
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
        ask_first = functools.partial(self._ask_first, quote, reason, version)
        made = None
        with contextlib.suppress(Fenced):
            made = self._fence.run(owner_of(self.first), "challenge", ask_first)
        for way in filter(functools.partial(self._sells_by, quote), self._further):
            is_refused = way is refused
            before = made or Challenge(body={"error": reason or "Payment required"}, headers={})
            given = reason if is_refused else None
            ask = functools.partial(
                _add_challenge, before, way, quote, given, version, is_refused=is_refused
            )
            with contextlib.suppress(Fenced):
                made = self._fence.run(owner_of(way), "challenge", ask)
        if made is None:
            raise ExecutionError("The price is unknown now. Try again later.")
        return made

    def _ask_first(self, quote: Quote, reason: str | None, version: int) -> Challenge:
        """Return the first verifier's checked 402."""
        made = self.first.challenge(quote, reason, version)
        if id(made) in self._checked:
            return made
        checked_challenge(made)
        if reason is None:
            if len(self._checked) >= _MAX_CHECKED:
                self._checked.clear()
            self._checked[id(made)] = made
        return made


def _add_challenge(
    made: Challenge,
    way: WayToPay,
    quote: Quote,
    reason: str | None,
    version: int,
    *,
    is_refused: bool,
) -> Challenge:
    added = way.challenge(quote, reason, version)
    return merged(made, added, is_refused=is_refused)


def _value_of(read: HeaderReader, name: str, scheme: str) -> str | None:
    """Return a header's value without its scheme; None if either is missing."""
    value = read(name)
    if value is None or not scheme:
        return value
    given, _, rest = value.strip().partition(" ")
    return rest.strip() if given.lower() == scheme.lower() else None
