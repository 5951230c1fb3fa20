"""Amounts of one buyer alone, for people who pay by a QR code, and the transfers that arrive.

Such a buyer cannot sign for the page, and a transfer's hash is public. So the page asks for an
amount a little above the price. The store lets only the page's Idempotency-Key buy with a transfer
of that amount, and the page may ask which transfer it was.
"""

import contextlib
import secrets
from collections import OrderedDict
from collections.abc import Sequence

import attrs

from gateway.concurrency.shared_answers import SharedAnswer
from gateway.domain import Endpoint, MinedTransfer
from gateway.domain.description import price_range
from gateway.errors import ChainUnavailable, ExecutionError, NotFound, ValidationError
from gateway.running.gateway import Gateway
from gateway.store.reserved_amounts import ReservedAmount, holder_of
from gateway_operator.transfer_search import transfer_pieces

# How long the page waits for the transfer.
PAY_S = 1800.0
# How long a transfer is looked for after that.
_LATE_S = 600.0
# An amount with less time left is not offered again.
_LEAST_PAY_S = 600.0
# Units above the price: a tenth of a cent, or, if those are taken, a cent.
_MARKS = (999, 9_999)
_TRIES = 8
# No amount is a multiple of this: a person who pays more than the price pays a round sum.
_ROUND = 100
# A key that is guessed would take the transfer.
_MIN_KEY_CHARS = 22
_SCAN_EVERY_S = 1.5
_MAX_SEEN = 20_000
# Blocks that a scan reads again. An endpoint behind a load balancer may know fewer than the one
# that told the head, and then leaves out the newest transfers without an error.
_AGAIN_BLOCKS = 150
# The narrowest endpoints answer for 5 blocks, and are asked 20 times a piece.
_LEAST_BLOCKS = 100
# Of one scan; the next one goes on. Most scans read one.
_MAX_PIECES = 8


@attrs.define(eq=False, repr=False)
class Amounts:
    """Reserves amounts, and finds their transfers. All lookups share one scan of the chain."""

    gateway: Gateway
    _scan: SharedAnswer[None] = attrs.field(init=False)
    # The newest transfer to the wallet of each amount: its block and its transaction.
    _seen: "OrderedDict[int, tuple[int, str]]" = attrs.field(factory=OrderedDict, init=False)
    # The awaited transfers before this block were read.
    _next_block: int = attrs.field(default=0, init=False)

    @_scan.default
    def _make_scan(self) -> SharedAnswer[None]:
        return SharedAnswer(self.gateway.now, ttl_s=_SCAN_EVERY_S)

    async def reserve(self, slug: str, price_units: int, key: str) -> ReservedAmount:
        """Return the amount that the holder of `key` pays; the same for a repeat in time.

        Raises `ValidationError`, `NotFound`, `ExecutionError` if nothing is sold now, and
        `ChainUnavailable`.
        """
        gateway, now = self.gateway, self.gateway.now()
        self._check(slug, price_units, key)
        for known in await gateway.store.find_amounts(holder_of(key), now):
            is_near = price_units <= known.units <= price_units + max(_MARKS)
            if is_near and known.pay_by - now >= _LEAST_PAY_S:
                return known
        head = await gateway.chain.head()
        offers = [
            ReservedAmount(
                units=units,
                from_block=head.number,
                pay_by=now + PAY_S,
                ends_at=now + PAY_S + self._age_s,
            )
            for units in self._choose(price_units)
        ]
        found = await gateway.store.reserve_amount(holder_of(key), offers, now)
        if found is None:
            raise ExecutionError("Too many buyers pay by a transfer now. Use another way to pay.")
        return found

    async def find(self, key: str) -> tuple[ReservedAmount, str | None]:
        """Return an amount of `key`, and the hash of its transfer once it is mined.

        It is the newest amount, or the one that was paid. Raises `NotFound`. While the chain does
        not answer, the hash is None.
        """
        now = self.gateway.now()
        amounts = await self.gateway.store.find_amounts(holder_of(key), now)
        if not amounts:
            raise NotFound("No amount is reserved for this Idempotency-Key.")
        paid = self._find_paid(amounts)
        if paid is None and now <= amounts[0].pay_by + _LATE_S:
            with contextlib.suppress(ChainUnavailable):
                await self._scan.get(self._read)
            paid = self._find_paid(amounts)
        return paid or (amounts[0], None)

    def _find_paid(self, amounts: Sequence[ReservedAmount]) -> tuple[ReservedAmount, str] | None:
        """Return the newest of these that a transfer paid since it was reserved."""
        for amount in amounts:
            block, tx_hash = self._seen.get(amount.units, (-1, ""))
            if block >= amount.from_block:
                return amount, tx_hash
        return None

    @property
    def _age_s(self) -> float:
        return self.gateway.settings.max_transfer_age_hours * 3600

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
        endpoints = [
            endpoint
            for one in self.gateway.catalog.everything()
            for endpoint in (one.endpoint, *(earlier for earlier, _ in one.earlier))
        ]
        return [
            units
            for units in (price_units + mark for mark in marks)
            if units % _ROUND and not any(_is_price(endpoint, units) for endpoint in endpoints)
        ]

    async def _read(self) -> None:
        """Read the transfers since the oldest amount that is awaited, but none twice."""
        wallet, chain = self.gateway.settings.wallet_key, self.gateway.chain
        awaited_since = self.gateway.now() - _LATE_S + self._age_s
        oldest = await self.gateway.store.find_first_block(awaited_since)
        if oldest is None:
            return
        head, pieces = await chain.head(), 0
        first = max(oldest, self._next_block)
        async for last, found in transfer_pieces(
            chain, first, head.number, recipient=wallet, least_blocks=_LEAST_BLOCKS
        ):
            for transfer in found:
                self._note(transfer)
            self._next_block = min(last + 1, max(first, head.number - _AGAIN_BLOCKS))
            pieces += 1
            if pieces == _MAX_PIECES:
                break
        while len(self._seen) > _MAX_SEEN:
            self._seen.popitem(last=False)

    def _note(self, transfer: MinedTransfer) -> None:
        if self._seen.get(transfer.amount_units, (-1, ""))[0] < transfer.block_number:
            self._seen[transfer.amount_units] = (transfer.block_number, transfer.tx_hash)
            self._seen.move_to_end(transfer.amount_units)


def _is_price(endpoint: Endpoint, units: int) -> bool:
    """Whether a request to an endpoint may cost exactly this."""
    lowest, highest = price_range(endpoint)
    each = [endpoint.price_per_page]
    if endpoint.unit_price is not None:
        each.append(endpoint.unit_price.price_units)
    if lowest <= units <= highest and any(one and units % one == 0 for one in each):
        return True
    steps = [step.price_units for step in endpoint.price_steps]
    return units in (endpoint.price_units, *steps)
