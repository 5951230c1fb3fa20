"""Limits what one payer can cost us: open payments, held files, and gas of failed settlements.

A reverted settlement costs gas, and a payer can make it revert after all checks: by moving the
money, by cancelling, or with a wallet contract that behaves differently in the block. So a new
account may have one open payment, and an account whose settlement failed through its own fault can
use only direct transfers for a day.
"""

import asyncio
import contextlib
import datetime as dt
from collections.abc import AsyncIterator

import attrs

from gateway.chain.smart_wallets import deploys_wallet
from gateway.contracts import Chain, Clock
from gateway.contracts.store import DeploymentLimit, OpenPayments, ReserveLimits
from gateway.domain import Authorization
from gateway.domain.eip3009 import BALANCE_OF, word
from gateway.errors import ExecutionError, PaymentRequired
from gateway.store import SqlStore

BARRED_S = 86_400.0
_DAY_S = 86_400.0

# The most open payments of one account. It also needs as many settled ones, and no code.
_MAX_OPEN = 8

# The most purchases of one payer that wait or have their turn.
_MAX_WAITING = 8

# Held files get only half of the memory if their authorization is valid for longer than this.
# Otherwise drained accounts could block all other files for an hour.
_SHORT_S = 600
_HALF = 2

# Seconds between reads of a payer's open payments.
_POLL_S = 0.25
_BUSY = (
    "Other payments of this account are not settled yet. Send the same request again in a few "
    "seconds."
)


@attrs.define(eq=False, repr=False)
class _PurchaseQueue:
    """The purchases of one payer. One holds the lock; the others wait in order."""

    lock: asyncio.Lock = attrs.field(factory=asyncio.Lock)
    waiting: list["_Purchase"] = attrs.field(factory=list)


@attrs.frozen(eq=False, repr=False)
class _Purchase:
    """One request. A retry has the same claim or Idempotency-Key."""

    claim: str
    key_hash: str | None
    is_repeat: bool

    def is_same(self, claim: str, key_hash: str | None) -> bool:
        """Whether a request with this claim and key gets the same task."""
        return self.claim == claim or (key_hash is not None and self.key_hash == key_hash)


@attrs.define(kw_only=True, eq=False, repr=False)
class Exposure:
    """Limits open payments per payer, and bars payers."""

    store: SqlStore
    chain: Chain
    held_file_bytes: int
    now: Clock
    # Smart wallets that settlements may deploy in a day.
    deployments_per_day: int = 0
    # Seconds that a purchase waits for its turn. With the wait for the outcome, this stays under
    # the minute after which most clients give up.
    turn_s: float = 15.0
    # Seconds that a failed settlement bars its payer.
    barred_s: float = BARRED_S
    _queues: dict[str, _PurchaseQueue] = attrs.field(factory=dict, init=False)

    @contextlib.asynccontextmanager
    async def turn(self, payer: str, claim: str, key_hash: str | None) -> AsyncIterator["Turn"]:
        """Wait for this purchase's turn among those of its payer.

        Retries of one purchase count once, because they get the same task. Raises `ExecutionError`
        if too many others wait or the wait is too long; nothing has been written then.
        """
        queue = self._queues.setdefault(payer, _PurchaseQueue())
        is_repeat = any(other.is_same(claim, key_hash) for other in queue.waiting)
        distinct = sum(not other.is_repeat for other in queue.waiting)
        if not is_repeat and distinct >= _MAX_WAITING:
            raise ExecutionError(_BUSY)
        until = asyncio.get_running_loop().time() + self.turn_s
        purchase, had_to_wait = _Purchase(claim, key_hash, is_repeat), bool(queue.waiting)
        queue.waiting.append(purchase)
        try:
            if had_to_wait:
                await _acquire(queue.lock, until)
            else:
                # Free, and without waiters.
                await queue.lock.acquire()
            try:
                yield Turn(self.store, payer, until, self.now, had_to_wait)
            finally:
                queue.lock.release()
        finally:
            queue.waiting.remove(purchase)
            if not queue.waiting:
                self._queues.pop(payer, None)

    async def check_not_barred(self, payer: str) -> None:
        """Raise `PaymentRequired` if a failed settlement bars this payer."""
        since = self.now() - self.barred_s
        failure = await self.store.payers.failure_of(payer, since=since)
        if failure is not None:
            end = dt.datetime.fromtimestamp(failure.at + self.barred_s, dt.UTC)
            raise PaymentRequired(
                f"A settlement of this account failed on-chain ({failure.tx_hash}), so x402 is "
                f"closed to it until {end:%Y-%m-%d %H:%M} UTC. A direct USDC transfer works."
            )

    async def limits(self, signed: Authorization) -> ReserveLimits:
        """Return the limits that `reserve` enforces for this payer.

        Reads the chain only for payers with open payments or an undeployed wallet.
        Raises `ChainUnavailable`.
        """
        payer, now = signed.sender, self.now()
        is_short = signed.valid_before <= now + _SHORT_S
        deployments = None
        if await deploys_wallet(signed, self.chain):
            deployments = DeploymentLimit(most=self.deployments_per_day, since=now - _DAY_S)
        limits = ReserveLimits(
            held_file_bytes=self.held_file_bytes if is_short else self.held_file_bytes // _HALF,
            most_open=1,
            barred_since=now - self.barred_s,
            deployments=deployments,
        )
        known = await self.store.payers.open_of(payer, now=now)
        if known.count == 0:
            return limits
        code, balance = await asyncio.gather(
            self.chain.code(payer), self.chain.call_uint(BALANCE_OF + word(payer))
        )
        most_open = 1 if code else _open_limit(known)
        return attrs.evolve(limits, most_open=most_open, balance_units=balance)


@attrs.frozen(eq=False, repr=False)
class Turn:
    """The turn of one purchase, which ends at `until` by the event loop's clock."""

    store: SqlStore
    payer: str
    until: float
    now: Clock
    had_to_wait: bool
    """Whether another purchase of the payer came before."""

    async def wait_for_change(self) -> None:
        """Wait until the payer's open payments change; return at once if it has none.

        Raises `ExecutionError` at `until`.
        """
        before = await self._open_payments()
        while before.count:
            if await self._open_payments() != before:
                return
            self._check_time()
            await asyncio.sleep(_POLL_S)
        self._check_time()

    def _check_time(self) -> None:
        if asyncio.get_running_loop().time() >= self.until:
            raise ExecutionError(_BUSY)

    async def _open_payments(self) -> OpenPayments:
        return await self.store.payers.open_of(self.payer, now=self.now())


def _open_limit(known: OpenPayments) -> int:
    """Return how many payments may be open: as many as were settled, from 1 to 8."""
    return max(1, min(known.settled, _MAX_OPEN))


async def _acquire(lock: asyncio.Lock, until: float) -> None:
    try:
        async with asyncio.timeout_at(until):
            await lock.acquire()
    except TimeoutError:
        raise ExecutionError(_BUSY) from None
