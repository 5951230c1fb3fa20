"""The request of a payment, as far as a lookup of the payment needs it."""

import attrs

from gateway.contracts import Quote
from gateway.domain import GenerationRequest, Payment
from gateway.errors import IdempotencyConflict


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SentRequest:
    """A request as the buyer sent it. The endpoint may be changed, off sale or gone."""

    slug: str
    # Hash of the fields that the buyer sent. None: only `fingerprint` is compared.
    sent_hash: str | None
    # Hash with the endpoint's defaults; empty if the endpoint does not take this request now.
    fingerprint: str
    # Wallet, network, endpoint, and the price as far as it is known before the checks.
    quote: Quote

    @classmethod
    def of(cls, quote: Quote, request: GenerationRequest) -> "SentRequest":
        """Return the sent request of a validated one."""
        slug = quote.endpoint.slug
        return cls(slug=slug, sent_hash=None, fingerprint=request.fingerprint(slug), quote=quote)

    def is_of(self, payment: Payment) -> bool:
        """Whether a payment paid for this request.

        The fingerprint also finds defaults that the buyer wrote out, and payments of earlier
        releases. The other hash also finds a request whose endpoint has changed since.
        """
        if payment.request_hash == self.fingerprint:
            return True
        return self.sent_hash is not None and payment.sent_hash == self.sent_hash

    def require_of(self, payment: Payment) -> None:
        """Raise `IdempotencyConflict` unless a payment paid for this request."""
        if not self.is_of(payment):
            raise IdempotencyConflict("This Idempotency-Key was used with another request.")

    def quote_for(self, payment: Payment, units: int) -> Quote:
        """Return the quote that a new proof of `units` for a payment on record is checked against.

        Its price is the payment's or today's: a repeat takes no more money.
        """
        is_known = units in (payment.price_units, *self.quote.earlier_units)
        return attrs.evolve(self.quote, price_units=units) if is_known else self.quote
