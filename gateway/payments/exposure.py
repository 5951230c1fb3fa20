"""Limits what one payer can make us risk: open payments, held files, and gas for nothing.

Sending a settlement costs our gas, also where it reverts. A payer can make it revert after every
check: by moving the money away, by cancelling, or with a wallet whose answer changes between the
simulation and the block. So an account that never paid has one payment open at a time, and one
whose settlement failed pays by direct transfer only until a day has passed.
"""

import asyncio
import contextlib
import datetime as dt
from collections.abc import AsyncIterator

import attrs

from gateway.contracts import Chain, Clock, Store
from gateway.contracts.payers import OpenPayments, ReserveLimits
from gateway.errors import ExecutionError, PaymentRequired
from gateway.usdc import BALANCE_OF, word

BARRED_S = 86_400.0
_MOST_OPEN = 8  # payments of an account without code that has paid as often before
# Together with the wait for an outcome this stays below the minute that most clients give.
_TURN_S = 15.0
_LOOK_S = 0.25
_MOST_WAITING = 8  # purchases of one payer
_BUSY = (
    "Other payments of this account are not settled yet; nothing was charged. Send the same "
    "request again in a few seconds."
)


@attrs.define
class _Line:
    """The purchases of one payer: one is looked at, the others wait in their order."""

    lock: asyncio.Lock = attrs.field(factory=asyncio.Lock)
    waiting: list["_Purchase"] = attrs.field(factory=list)


@attrs.frozen(eq=False)
class _Purchase:
    """What tells a repeat from another purchase: its authorization, or its Idempotency-Key."""

    claim: str
    key_hash: str | None
    is_repeat: bool

    def is_same(self, claim: str, key_hash: str | None) -> bool:
        """Whether a request with this claim and key leads to the same task."""
        return self.claim == claim or (key_hash is not None and self.key_hash == key_hash)


@attrs.define(kw_only=True)
class Exposure:
    """What each payer may have open, and which payers are barred."""

    store: Store
    chain: Chain
    held_file_bytes: int
    now: Clock
    _lines: dict[str, _Line] = attrs.field(factory=dict, init=False)

    @contextlib.asynccontextmanager
    async def turn(self, payer: str, claim: str, key_hash: str | None) -> AsyncIterator["Turn"]:
        """Wait for the turn of this purchase among those of its payer.

        Repeats of one purchase count once, since all of them get the same task. Raises
        `ExecutionError` where too many others wait, or this one waited too long; nothing was
        written down for it.
        """
        line = self._lines.setdefault(payer, _Line())
        is_repeat = any(other.is_same(claim, key_hash) for other in line.waiting)
        distinct = sum(not other.is_repeat for other in line.waiting)
        if not is_repeat and distinct >= _MOST_WAITING:
            raise ExecutionError(_BUSY)
        until = asyncio.get_running_loop().time() + _TURN_S
        purchase = _Purchase(claim, key_hash, is_repeat)
        line.waiting.append(purchase)
        try:
            await _acquire(line.lock, until)
            try:
                yield Turn(self.store, payer, until, self.now)
            finally:
                line.lock.release()
        finally:
            line.waiting.remove(purchase)
            if not line.waiting:
                self._lines.pop(payer, None)

    async def check_not_barred(self, payer: str) -> None:
        """Raise `PaymentRequired` where a settlement of this payer failed within a day."""
        failure = await self.store.payers.failure_of(payer, since=self.now() - BARRED_S)
        if failure is not None:
            end = dt.datetime.fromtimestamp(failure.at + BARRED_S, dt.UTC)
            raise PaymentRequired(
                f"A settlement of this account failed on-chain ({failure.tx_hash}), so x402 is "
                f"closed to it until {end:%Y-%m-%d %H:%M} UTC. A direct USDC transfer works."
            )

    async def limits(self, payer: str) -> ReserveLimits:
        """Return what T1 must check of this payer; asks the chain only where payments are open."""
        known = await self.store.payers.open_of(payer, now=self.now())
        if known.count == 0:
            return ReserveLimits(
                held_file_bytes=self.held_file_bytes,
                most_open=1,
                barred_since=self.now() - BARRED_S,
            )
        code, balance = await asyncio.gather(
            self.chain.code(payer), self.chain.call_uint(BALANCE_OF + word(payer))
        )
        return ReserveLimits(
            held_file_bytes=self.held_file_bytes,
            most_open=1 if code else _most_open(known),
            balance_units=balance,
            barred_since=self.now() - BARRED_S,
        )


@attrs.frozen
class Turn:
    """The turn of one purchase, until a moment of the loop's time."""

    store: Store
    payer: str
    until: float
    now: Clock

    async def wait_for_change(self) -> None:
        """Return once a payment of the payer was closed; raises `ExecutionError` at the end."""
        before = await self._open()
        while before.count and await self._open() == before:
            if asyncio.get_running_loop().time() >= self.until:
                raise ExecutionError(_BUSY)
            await asyncio.sleep(_LOOK_S)

    async def _open(self) -> OpenPayments:
        return await self.store.payers.open_of(self.payer, now=self.now())


def _most_open(known: OpenPayments) -> int:
    """Return how many payments may be open: as many as were settled before, within bounds."""
    return max(1, min(known.settled, _MOST_OPEN))


async def _acquire(lock: asyncio.Lock, until: float) -> None:
    try:
        async with asyncio.timeout_at(until):
            await lock.acquire()
    except TimeoutError:
        raise ExecutionError(_BUSY) from None
