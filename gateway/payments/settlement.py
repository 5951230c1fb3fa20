"""Settles each reserved payment in its own asyncio task, the payment's driver.

The server may cancel a request handler when the client disconnects, but the driver goes on. A sweep
starts drivers for payments left open by a restart or an outage of the chain.
"""

import asyncio
import contextlib
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import attrs
import structlog

from gateway.concurrency.fence import is_plugins_own
from gateway.concurrency.periodic import Periodic, always
from gateway.contracts import GasOfKey, NoFreeNonce, Settler
from gateway.domain import Authorization, Payment
from gateway.errors import ChainUnavailable, ExecutionError, StoreUnavailable
from gateway.payments.failed_settlements import FailedSettlements
from gateway.payments.obstacles import Obstacles
from gateway.payments.reconcile import Reconciler
from gateway.store import SqlStore
from gateway.telemetry import signals

_log = structlog.get_logger()

# The most payments that the next sweep drives again because their driver failed.
_MOST_FAILED = 100


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SettlementTiming:
    """Durations in seconds."""

    # For what a settler reads ahead: the payer's next purchase waits.
    prepare_s: float = 5.0
    # Between two reads of the receipt, while the buyer waits: one block of Base.
    poll_s: float = 0.2
    # Before the first one. With the time of the calls that is one block, too.
    first_poll_s: float = 0.15
    # Between two full checks, which also read the nonce and resend. A transaction that was not
    # lost is mined by then, even in blocks of 2 s.
    full_check_s: float = 4.0
    # Between two reads of the receipt after the first full check.
    late_poll_s: float = 1.0
    # A driver stops after this time; the sweep starts another.
    drive_s: float = 30.0
    # Between two sweeps over all open payments.
    sweep_s: float = 5.0
    # A sweep leaves a payment to the driver of another process for this time, unless that process
    # may have ended. Most payments are closed by then, even in blocks of 2 s.
    patience_s: float = 12.0
    # A payment open for longer is checked only every `old_check_s`: the account is empty, or the
    # chain is unreachable.
    old_s: float = 600.0
    old_check_s: float = 60.0


@attrs.define(eq=False, repr=False)
class _Age:
    """When this process first saw a payment open, and when to check it again, in loop time."""

    seen_at: float
    next_check_at: float = 0.0


@attrs.define(eq=False, slots=False, repr=False)
class Settlements:
    """One driver for each open payment, and a sweep that finds payments without a driver."""

    _store: SqlStore
    settler: Settler
    _reconciler: Reconciler
    obstacles: Obstacles
    _failed: FailedSettlements
    _on_settled: Callable[[], None]
    timing: SettlementTiming = attrs.field(factory=SettlementTiming, kw_only=True)
    # By payment id, of the payments that were open at the last sweep.
    _ages: dict[int, _Age] = attrs.field(factory=dict, init=False)
    # The end of the last sweep, in loop time.
    _swept_at: float = attrs.field(default=-math.inf, init=False)

    def __attrs_post_init__(self) -> None:
        self._drivers = Drivers(self._on_settled)
        self._periodic = Periodic("settlement-sweep", self._sweep, self.timing.sweep_s)

    def start(self, is_mine: Callable[[], bool] = always) -> None:
        """Sweep at once, then every few seconds, while `is_mine` returns True."""
        self._periodic.start(is_mine, every_s=self.timing.sweep_s)
        self.obstacles.start()

    async def close(self, *, grace_s: float) -> None:
        """Stop; drivers get `grace_s` seconds to finish.

        Open payments are durable, and the next start drives them again.
        """
        await self._periodic.stop()
        await self.obstacles.stop()
        await self._drivers.stop(grace_s=grace_s)
        await self.settler.close()

    async def check_can_settle(self) -> None:
        """Raise `ExecutionError` with a message for buyers if x402 cannot be settled now."""
        try:
            await self.obstacles.check()
        except ExecutionError as error:
            raise ExecutionError(self.obstacles.buyer_message or error.message) from error

    async def prepare(self, authorization: Authorization) -> None:
        """Let the settler read ahead, if it does; its check asks again for what is missing."""
        prepare = getattr(self.settler, "prepare", None)
        if prepare is None:
            return
        try:
            async with asyncio.timeout(self.timing.prepare_s):
                await prepare(authorization)
        except ChainUnavailable:
            return
        except BaseException as error:
            if not is_plugins_own(error):
                raise
            _log.warning("payment.not_prepared", error=type(error).__name__)

    @property
    def addresses(self) -> Sequence[str]:
        """The addresses that pay for gas; empty if the settler reports none."""
        return tuple(getattr(self.settler, "addresses", ()))

    @property
    def about(self) -> str | None:
        """The settler's description of itself and its gas, or None. No RPC call."""
        return getattr(self.settler, "about", None)

    @property
    def gas(self) -> tuple[GasOfKey, ...]:
        """The last known gas balance of each key; empty if the settler reports none."""
        return tuple(getattr(self.settler, "gas", ()))

    async def drive(self, payment: Payment, *, wait_s: float, is_new: bool = False) -> None:
        """Start the payment's driver unless it runs, and wait for it at most `wait_s` seconds.

        `is_new`: its checks have just passed, so the chain is not read while it waits for a nonce.

        The driver goes on after the wait or a cancellation. After `close` none is started: the next
        start drives the payment.
        """
        settle = partial(self._settle_until_closed, is_new=is_new)
        await self._drivers.drive(payment, settle, drive_s=self.timing.drive_s, wait_s=wait_s)

    async def _settle_until_closed(self, payment: Payment, *, is_new: bool = False) -> None:
        """Submit, then poll the chain until the outcome is known, even if submitting fails."""
        began_s, timing, now = time.perf_counter(), self.timing, asyncio.get_running_loop().time
        tx_hash, failure = await self._submit(payment)
        pause_s, unsent_pause_s = timing.poll_s, timing.poll_s
        full_at = now() + timing.full_check_s
        if tx_hash is not None and self.addresses:
            # Our key has just sent it. A facilitator's is mined already.
            await asyncio.sleep(timing.first_poll_s)
        elif _needs_nonce(failure):
            await asyncio.sleep(pause_s)
        # The simulation of a new payment has just shown that it is not settled.
        is_due = not (is_new and _needs_nonce(failure))
        while True:
            is_full = now() >= full_at
            if (is_due or is_full) and await self._is_closed(payment, tx_hash, is_full=is_full):
                self._send_settled(time.perf_counter() - began_s)
                return
            # Retry a failed submit after each poll, because the authorization expires soon.
            if failure is not None or is_full:
                found, failure = await self._submit(payment, failure)
                tx_hash = found or tx_hash
            # Without a nonce nothing was sent, so only full checks find an outcome.
            is_due = tx_hash is not None or not _needs_nonce(failure)
            if is_full:
                pause_s, full_at = timing.late_poll_s, now() + timing.full_check_s
            if tx_hash is not None or _needs_nonce(failure):
                await asyncio.sleep(pause_s)
            else:
                await asyncio.sleep(unsent_pause_s)
                unsent_pause_s = min(2 * unsent_pause_s, timing.sweep_s)

    def _send_settled(self, seconds: float) -> None:
        settler = type(self.settler).__module__.partition(".")[0]
        signals.payment_settled.send(settler=settler, seconds=seconds)

    async def _submit(
        self, payment: Payment, earlier: type[BaseException] | None = None
    ) -> tuple[str | None, type[BaseException] | None]:
        """Return the transaction's hash or None, and the kind of error if submitting failed.

        A settler's error proves nothing about the payment; only the chain does. A key that had no
        free nonce for the `earlier` submit either is not logged again.
        """
        try:
            return await self.settler.submit(payment), None
        except BaseException as error:
            if not is_plugins_own(error):
                raise
            failure = type(error)
            if not (_needs_nonce(failure) and _needs_nonce(earlier)):
                _log.warning("payment.not_sent", payment=payment.id, error=failure.__name__)
            return None, failure

    async def _is_closed(self, payment: Payment, tx_hash: str | None, *, is_full: bool) -> bool:
        """Return whether the payment is closed now; False while that is unknown."""
        try:
            return await self._check_chain(payment, tx_hash, is_full=is_full)
        except (ChainUnavailable, StoreUnavailable) as error:
            _log_silent(payment, error)
            return False

    async def _check_chain(self, payment: Payment, tx_hash: str | None, *, is_full: bool) -> bool:
        """Return whether the payment is closed now.

        Reads the transaction's receipt. A full check, or one without a hash, reads the nonce too.
        """
        if tx_hash is not None and await self._reconciler.close_by_receipt(payment, tx_hash):
            _log.info("payment.settled", payment=payment.id, transaction=tx_hash)
            return True
        if tx_hash is not None and not is_full:
            return False
        return await self._reconciler.close(payment)

    async def _settle_old(self, payment: Payment) -> None:
        """Submit and check once. Raises `ChainUnavailable`, and `TimeoutError` if it stays open.

        An empty account can keep its payment open for over an hour; this saves RPC calls.
        """
        tx_hash, _ = await self._submit(payment)
        if not await self._check_chain(payment, tx_hash, is_full=True):
            raise TimeoutError

    async def _sweep(self) -> None:
        open_payments, drive_s = await self._store.open_payments(), self.timing.drive_s
        now = asyncio.get_running_loop().time()
        self._ages = {
            payment.id: self._ages.get(payment.id, _Age(now)) for payment in open_payments
        }
        # After a start, or a while in which another process swept, every payment is driven.
        is_first = now > self._swept_at + self.timing.patience_s
        failed = self._drivers.take_failed()
        for payment in open_payments:
            age, is_urgent = self._ages[payment.id], is_first or payment.id in failed
            if not is_urgent and self._may_have_driver(age, now):
                continue
            if now < age.seen_at + self.timing.old_s:
                self._drivers.ensure(payment, self._settle_until_closed, drive_s=drive_s)
            elif now >= age.next_check_at:
                age.next_check_at = now + self.timing.old_check_s
                self._drivers.ensure(payment, self._settle_old, drive_s=drive_s)
        # Neither waits for the other: each judgment takes RPC calls.
        ends = await asyncio.gather(
            self._failed.judge_all(), self.settler.tend(), return_exceptions=True
        )
        self._swept_at = asyncio.get_running_loop().time()
        for error in filter(None, ends):
            raise error

    def _may_have_driver(self, age: _Age, now: float) -> bool:
        """Whether the payment's driver may run, here or in another process."""
        is_young = now < age.seen_at + self.timing.patience_s
        return is_young and not self._store.nodes.may_have_lost(age.seen_at)


def _needs_nonce(failure: type[BaseException] | None) -> bool:
    """Whether a submit only has to be repeated until a transaction of the key is mined."""
    return failure is not None and issubclass(failure, NoFreeNonce)


def _log_silent(payment: Payment, error: ChainUnavailable | StoreUnavailable) -> None:
    if isinstance(error, ChainUnavailable):
        _log.warning("payment.chain_silent", payment=payment.id, error=error.message)
    else:
        _log.warning("payment.store_silent", payment=payment.id, error=error.message)


class Drivers:
    """At most one driver for each open payment. Drivers outlive the requests that wait."""

    def __init__(self, on_closed: Callable[[], None]) -> None:
        # Called when a driver has closed its payment.
        self._on_closed = on_closed
        # By payment id.
        self._running: dict[int, asyncio.Task[None]] = {}
        # The ids of payments whose driver failed; only the newest.
        self._failed: deque[int] = deque(maxlen=_MOST_FAILED)
        self._is_stopped = False

    async def drive(
        self,
        payment: Payment,
        settle: Callable[[Payment], Awaitable[None]],
        *,
        drive_s: float,
        wait_s: float,
    ) -> None:
        """Start the payment's driver unless it runs, and wait for it at most `wait_s` seconds.

        The driver goes on after the wait or a cancellation. After `stop` none is started.
        """
        if self._is_stopped and payment.id not in self._running:
            return
        driver = self.ensure(payment, settle, drive_s=drive_s)
        if wait_s > 0:
            await asyncio.wait({driver}, timeout=wait_s)

    def ensure(
        self,
        payment: Payment,
        settle: Callable[[Payment], Awaitable[None]],
        *,
        drive_s: float,
    ) -> asyncio.Task[None]:
        """Return the payment's driver. Unless it runs, start it for at most `drive_s` seconds."""
        driver = self._running.get(payment.id)
        if driver is None:
            work = self._run(payment, settle, drive_s)
            driver = asyncio.create_task(work, name=f"settle-{payment.id}")
            self._running[payment.id] = driver
            driver.add_done_callback(lambda _: self._running.pop(payment.id, None))
        return driver

    def take_failed(self) -> set[int]:
        """Return the payments whose driver failed since the last call."""
        failed = set(self._failed)
        self._failed.clear()
        return failed

    async def stop(self, *, grace_s: float) -> None:
        """Start no more drivers; running ones get `grace_s` seconds to finish."""
        # The server still answers while it drains, and a retry must not start a driver.
        self._is_stopped = True
        if self._running:
            await asyncio.wait(self._running.values(), timeout=grace_s)
        for driver in list(self._running.values()):
            driver.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await driver

    async def _run(
        self, payment: Payment, settle: Callable[[Payment], Awaitable[None]], drive_s: float
    ) -> None:
        structlog.contextvars.bind_contextvars(
            task=payment.task_id, slug=payment.slug, payment=payment.id
        )
        try:
            async with asyncio.timeout(drive_s):
                await settle(payment)
        except TimeoutError:
            _log.warning("payment.open", payment=payment.id)
        except (ChainUnavailable, StoreUnavailable) as error:
            _log_silent(payment, error)
        except Exception:  # noqa: BLE001 - the sweep starts another driver
            _log.exception("payment.driver_failed", payment=payment.id)
            self._failed.append(payment.id)
        else:
            self._on_closed()
