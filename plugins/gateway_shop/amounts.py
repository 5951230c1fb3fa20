"""Amounts of one buyer alone, for people who pay by a QR code, and the transfers that arrive.

Such a buyer cannot sign for the page, and a transfer's hash is public. So the page asks for an
amount a little above the price. The store lets only the page's Idempotency-Key buy with a transfer
of that amount, and the page may ask which transfer it was.
"""

import secrets
from collections import OrderedDict

import attrs

from gateway.concurrency.shared_answers import SharedAnswer
from gateway.domain import Endpoint
from gateway.domain.description import price_range
from gateway.errors import ChainUnavailable, ExecutionError, NotFound, ValidationError
from gateway.running.gateway import Gateway
from gateway.store.reserved_amounts import ReservedAmount, holder_of
from gateway_operator.transfer_search import transfer_pieces

# How long the page waits for the transfer.
PAY_S = 1800.0
# How long a transfer is looked for after that.
_LATE_S = 600.0
# Units above the price: a tenth of a cent, or, if those are taken, a cent.
_MARKS = (999, 9_999)
_TRIES = 8
# A key that is guessed would take the transfer.
_MIN_KEY_CHARS = 22
_SCAN_EVERY_S = 1.5
_MAX_SEEN = 20_000


@attrs.define
class Amounts:
    """Reserves amounts, and finds their transfers. All lookups share one scan of the chain."""

    gateway: Gateway
    _scan: SharedAnswer[None] = attrs.field(init=False)
    # The transactions of transfers to the wallet by their amounts, and the blocks that were read.
    _seen: "OrderedDict[int, str]" = attrs.field(factory=OrderedDict, init=False)
    _blocks: tuple[int, int] | None = attrs.field(default=None, init=False)

    @_scan.default
    def _make_scan(self) -> SharedAnswer[None]:
        return SharedAnswer(self.gateway.now, ttl_s=_SCAN_EVERY_S)

    async def reserve(self, slug: str, price_units: int, key: str) -> ReservedAmount:
        """Return the amount that the holder of `key` pays; the same for a repeat.

        Raises `ValidationError`, `NotFound`, `ExecutionError` if nothing is sold now, and
        `ChainUnavailable`.
        """
        gateway, now = self.gateway, self.gateway.now()
        self._check(slug, price_units, key)
        known = await gateway.store.find_amount(holder_of(key), price_units, now)
        if known is not None and known.units <= price_units + max(_MARKS):
            return known
        head = await gateway.chain.head()
        age_s = gateway.settings.max_transfer_age_hours * 3600
        offers = [
            ReservedAmount(
                units=units,
                from_block=head.number,
                pay_by=now + PAY_S,
                ends_at=now + PAY_S + age_s,
            )
            for units in self._choose(price_units)
        ]
        found = await gateway.store.reserve_amount(holder_of(key), offers, now)
        if found is None:
            raise ExecutionError("Too many buyers pay by a transfer now. Use another way to pay.")
        return found

    async def find(self, key: str) -> tuple[ReservedAmount, str | None]:
        """Return the newest amount of `key`, and the hash of its transfer once it is mined.

        Raises `NotFound`. While the chain does not answer, the hash is None.
        """
        now = self.gateway.now()
        amount = await self.gateway.store.find_amount(holder_of(key), 0, now)
        if amount is None:
            raise NotFound("No amount is reserved for this Idempotency-Key.")
        if now <= amount.pay_by + _LATE_S and amount.units not in self._seen:
            try:
                await self._scan.get(lambda: self._read(amount.from_block))
            except ChainUnavailable:
                return amount, None
        return amount, self._seen.get(amount.units)

    def _check(self, slug: str, price_units: int, key: str) -> None:
        gateway, registered = self.gateway, self.gateway.catalog[slug]
        if len(key) < _MIN_KEY_CHARS:
            raise ValidationError(f"Idempotency-Key must have {_MIN_KEY_CHARS} characters or more.")
        lowest, highest = price_range(registered.endpoint)
        if not lowest <= price_units <= highest:
            raise ValidationError("No request to this endpoint has this price.")
        gateway.wallet.check_known()
        gateway.readiness.check_serving(slug)
        if gateway.quote(registered.endpoint).selling == "nothing":
            raise ExecutionError(gateway.sale_problem(slug) or "Nothing is sold now.")

    def _choose(self, price_units: int) -> list[int]:
        """Return a few amounts above a price at random, the smaller ones first.

        None is the price of a request: its buyer would be refused, or could buy with the transfer.
        """
        marks = [1 + secrets.randbelow(most) for most in _MARKS for _ in range(_TRIES)]
        endpoints = [one.endpoint for one in self.gateway.catalog.everything()]
        return [
            price_units + mark
            for mark in marks
            if not any(_is_price(endpoint, price_units + mark) for endpoint in endpoints)
        ]

    async def _read(self, first: int) -> None:
        """Read the transfers from `first` on that were not read yet."""
        wallet = self.gateway.settings.wallet_key
        known = self._blocks
        if known is not None and known[0] <= first:
            first = known[1] + 1
        head = await self.gateway.chain.head()
        begin = known[0] if known is not None and known[0] < first else first
        async for last, found in transfer_pieces(
            self.gateway.chain, first, head.number, recipient=wallet
        ):
            for transfer in found:
                self._seen.setdefault(transfer.amount_units, transfer.tx_hash)
            self._blocks = (begin, last)
        while len(self._seen) > _MAX_SEEN:
            self._seen.popitem(last=False)


def _is_price(endpoint: Endpoint, units: int) -> bool:
    """Whether a request to an endpoint may cost exactly this."""
    lowest, highest = price_range(endpoint)
    per_page = endpoint.price_per_page
    if per_page is not None and units % per_page == 0 and lowest <= units <= highest:
        return True
    steps = [step.price_units for step in endpoint.price_steps]
    return units in (endpoint.price_units, *steps)
