"""Drives reserved payments to their end, in tasks that the app owns.

A request's handler may be cancelled when its client leaves; settlement goes on without it.
Payments still open at a start, or left open by a silent chain, are driven again here.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Callable

import structlog

from gateway.contracts import Quote, Settler, Store
from gateway.domain import Authorization, Payment
from gateway.errors import ChainUnavailable, ExecutionError
from gateway.payments.failed_settlements import FailedSettlements
from gateway.payments.obstacles import Obstacles
from gateway.payments.periodic import Periodic
from gateway.payments.reconcile import Reconciler

_FIRST_LOOK_S = 0.1  # after sending; doubles up to the next
_LOOK_S = 1.0  # half of Base's block time
_FULL_CHECK_EVERY = 4  # looks at the receipt between two looks at the nonce itself
_DRIVE_S = 30.0  # after that the sweep takes over
_SWEEP_S = 5.0  # between two looks at everything open
_log = structlog.get_logger()


class Settlements:
    """One driver per open payment, and a sweep that finds those without one."""

    def __init__(
        self,
        store: Store,
        settler: Settler,
        reconciler: Reconciler,
        obstacles: Obstacles,
        failed: FailedSettlements,
        on_settled: Callable[[], None],
    ) -> None:
        self._store = store
        self._settler = settler
        self._reconciler = reconciler
        self.obstacles = obstacles
        self._failed = failed
        self._on_settled = on_settled
        self._drivers: dict[int, asyncio.Task[None]] = {}
        self._periodic = Periodic("settlement-sweep", self._sweep, _SWEEP_S)

    def start(self) -> None:
        """Begin to sweep: at once, and every few seconds."""
        self._periodic.start()
        self.obstacles.start()

    async def close(self, *, grace_s: float) -> None:
        """Let the drivers finish for `grace_s` seconds; what stays open is durable."""
        await self._periodic.stop()
        await self.obstacles.stop()
        if self._drivers:
            await asyncio.wait(self._drivers.values(), timeout=grace_s)
        for driver in list(self._drivers.values()):
            driver.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await driver
        await self._settler.close()

    async def check_ready(self) -> None:
        """Raise `ExecutionError` where an x402 payment could not be settled now.

        Its sentence is the operator's: it may name an address and what it holds.
        """
        await self.obstacles.check()

    async def check_can_settle(self) -> None:
        """Raise the same with a sentence for a caller."""
        try:
            await self.obstacles.check()
        except ExecutionError as error:
            raise ExecutionError(self.obstacles.said or error.message) from error

    @property
    def about(self) -> str | None:
        """What settles, and how long its gas money lasts, as it was last seen; no call."""
        return getattr(self._settler, "about", None)

    async def check(self, authorization: Authorization, quote: Quote) -> None:
        """Raise `PaymentRequired` or `ExecutionError` where this one would not be settled."""
        await self._settler.check(authorization, quote)

    async def drive(self, payment: Payment, *, wait_s: float) -> None:
        """Settle a payment, or join who does, for at most `wait_s` seconds.

        Neither the time-out nor the caller's cancellation stops the driver.
        """
        await asyncio.wait({self._driver(payment)}, timeout=wait_s)

    def _driver(self, payment: Payment) -> asyncio.Task[None]:
        driver = self._drivers.get(payment.id)
        if driver is None:
            driver = asyncio.create_task(self._drive(payment), name=f"settle-{payment.id}")
            self._drivers[payment.id] = driver
            driver.add_done_callback(lambda _: self._drivers.pop(payment.id, None))
        return driver

    async def _drive(self, payment: Payment) -> None:
        try:
            async with asyncio.timeout(_DRIVE_S):
                await self._until_closed(payment)
        except TimeoutError:
            _log.warning("payment.open", payment=payment.id)
        except Exception:  # noqa: BLE001 - a lane's edge: the sweep drives it again
            _log.exception("payment.driver_failed", payment=payment.id)
        else:
            self._on_settled()

    async def _until_closed(self, payment: Payment) -> None:
        """Send, then look until the outcome is known, also where sending goes wrong."""
        tx_hash, has_failed = await self._submit(payment)
        pause_s = _FIRST_LOOK_S
        for look in itertools.count():
            try:
                if await self._look(payment, tx_hash, look):
                    return
            except ChainUnavailable as error:
                _log.warning("payment.chain_silent", payment=payment.id, error=error.message)
            # What failed is tried again after every look: the authorization's life is short.
            if has_failed or _is_full(look):
                found, has_failed = await self._submit(payment)
                tx_hash = found or tx_hash
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _SWEEP_S if tx_hash is None else _LOOK_S)

    async def _submit(self, payment: Payment) -> tuple[str | None, bool]:
        """Send; return the hash to look for, and whether sending failed.

        A settler that fails is no news about the payment, only the chain is.
        """
        try:
            return await self._settler.submit(payment), False
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            _log.warning("payment.not_sent", payment=payment.id, error=type(error).__name__)
            return None, True

    async def _look(self, payment: Payment, tx_hash: str | None, look: int) -> bool:
        """Look at the transaction that was sent, now and then at the nonce itself."""
        if tx_hash is not None and await self._reconciler.close_by_receipt(payment, tx_hash):
            _log.info("payment.settled", payment=payment.id, transaction=tx_hash)
            return True
        if tx_hash is not None and not _is_full(look):
            return False
        return await self._reconciler.close(payment)

    async def _sweep(self) -> None:
        open_payments = await self._store.open_payments()
        for payment in open_payments:
            self._driver(payment)
        await self._failed.look()
        await self._settler.tend()


def _is_full(look: int) -> bool:
    """Whether this look is also at the nonce itself, and followed by sending again."""
    return look % _FULL_CHECK_EVERY == _FULL_CHECK_EVERY - 1
