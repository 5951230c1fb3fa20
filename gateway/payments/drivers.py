"""The tasks that bring open payments to their end: one for each payment, whoever waits for it."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import structlog

from gateway.domain import Payment
from gateway.errors import ChainUnavailable
from gateway.telemetry.log_context import bind_task

_log = structlog.get_logger()


class Drivers:
    """At most one driver for each open payment; the web server's cancellations do not reach it."""

    def __init__(self, on_closed: Callable[[], None]) -> None:
        # Called after each driver that came to its end.
        self._on_closed = on_closed
        # By the payment's id.
        self._running: dict[int, asyncio.Task[None]] = {}
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

        Neither the end of the wait nor the caller's cancellation stops the driver. After `stop`
        nothing is started: the payment is driven after the next start.
        """
        if self._is_stopped and payment.id not in self._running:
            return
        driver = self.ensure(payment, settle, drive_s=drive_s)
        await asyncio.wait({driver}, timeout=wait_s)

    def ensure(
        self,
        payment: Payment,
        settle: Callable[[Payment], Awaitable[None]],
        *,
        drive_s: float,
    ) -> asyncio.Task[None]:
        """Return the payment's driver; start it, for at most `drive_s` seconds, unless it runs."""
        driver = self._running.get(payment.id)
        if driver is None:
            work = self._run(payment, settle, drive_s)
            driver = asyncio.create_task(work, name=f"settle-{payment.id}")
            self._running[payment.id] = driver
            driver.add_done_callback(lambda _: self._running.pop(payment.id, None))
        return driver

    async def stop(self, *, grace_s: float) -> None:
        """Start none any more; drivers that run may finish for `grace_s` seconds."""
        # The server answers on while tasks end: a repeated request starts no driver any more.
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
        bind_task(task=payment.task_id, slug=payment.slug, payment=payment.id)
        try:
            async with asyncio.timeout(drive_s):
                await settle(payment)
        except TimeoutError:
            _log.warning("payment.open", payment=payment.id)
        except ChainUnavailable as error:
            _log.warning("payment.chain_silent", payment=payment.id, error=error.message)
        except Exception:  # noqa: BLE001 - the edge of a driver: the sweep starts another
            _log.exception("payment.driver_failed", payment=payment.id)
        else:
            self._on_closed()
