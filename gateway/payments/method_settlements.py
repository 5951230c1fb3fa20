"""Settles payments of further methods: asks the method until it answers, and stores the outcome.

The method answers that it took the money, or that it never will. An error or a timeout is not an
answer, so the payment stays open. For x402, the chain decides; see `settlement.py`.
"""

import asyncio
import time
from collections.abc import Callable, Mapping

import attrs
import structlog

from gateway.concurrency.periodic import Periodic, always
from gateway.contracts import Clock
from gateway.contracts.payment_methods import MethodPayment, PaymentMethod, Refused, Taken
from gateway.domain import Payment
from gateway.payments.settlement import Drivers
from gateway.store import SqlStore
from gateway.telemetry import signals

_log = structlog.get_logger()


@attrs.frozen(kw_only=True)
class MethodTiming:
    """How long drivers and the sweep wait, in seconds."""

    # Timeout of a call to a method.
    ask_s: float = 30.0

    # The pause after the first error. It doubles each time, up to `sweep_s`.
    first_pause_s: float = 0.25

    # A driver stops after this time; the sweep starts another.
    drive_s: float = 120.0

    # Between two sweeps over all open payments.
    sweep_s: float = 15.0


class MethodSettlements:
    """One driver for each open payment, and a sweep that finds payments without one."""

    def __init__(
        self,
        store: SqlStore,
        methods: Mapping[str, PaymentMethod],
        now: Clock,
        on_settled: Callable[[], None],
        on_dropped: Callable[[str], None],
    ) -> None:
        self._store = store
        self._methods = methods
        self._now = now
        # Called with the task id of each refused payment.
        self._on_dropped = on_dropped
        self.timing = MethodTiming()
        self._drivers = Drivers(on_settled)
        # Methods that have open payments but are not installed.
        self._missed: set[str] = set()
        self._periodic = Periodic("method-sweep", self._sweep, self.timing.sweep_s)

    def start(self, is_mine: Callable[[], bool] = always) -> None:
        """Sweep at once, then every few seconds, while `is_mine` returns True."""
        self._periodic.is_mine = is_mine
        self._periodic.every_s = self.timing.sweep_s
        self._periodic.start()

    async def close(self, *, grace_s: float) -> None:
        """Stop; drivers get `grace_s` seconds to finish. The next start asks again."""
        await self._periodic.stop()
        await self._drivers.stop(grace_s=grace_s)

    async def drive(self, payment: Payment, *, wait_s: float) -> None:
        """Start the payment's driver unless it runs, and wait for it at most `wait_s`."""
        await self._drivers.drive(
            payment, self._settle_until_closed, drive_s=self.timing.drive_s, wait_s=wait_s
        )

    async def _sweep(self) -> None:
        for each in await self._store.methods.open_payments():
            if each.method in self._methods:
                self._drivers.ensure(
                    each.payment, self._settle_until_closed, drive_s=self.timing.drive_s
                )
            elif each.method not in self._missed:
                self._missed.add(each.method)
                _log.error("payment.method_missing", method=each.method, payment=each.payment.id)

    async def _settle_until_closed(self, payment: Payment) -> None:
        began_s = time.perf_counter()
        opened = await self._store.methods.open_payment(payment.id)
        if opened is None or not await self._store.methods.begin_settling(
            payment.id, now=self._now()
        ):
            return
        method = self._methods[opened.method]
        answer = await self._ask_until_answered(method, opened.asked)
        if not await self._store.methods.close(payment.id, answer, now=self._now()):
            return
        if isinstance(answer, Refused):
            _log.info("payment.method_refused", payment=payment.id, method=opened.method)
            self._on_dropped(payment.task_id)
            return
        _log.info("payment.settled", payment=payment.id, method=opened.method)
        signals.payment_settled.send(settler=opened.method, seconds=time.perf_counter() - began_s)

    async def _ask_until_answered(
        self, method: PaymentMethod, asked: MethodPayment
    ) -> Taken | Refused:
        """Return the method's answer. After an error, the money may have been taken, so retry."""
        pause_s = self.timing.first_pause_s
        while True:
            try:
                async with asyncio.timeout(self.timing.ask_s):
                    answer = await method.settle(asked)
                if isinstance(answer, Taken | Refused):
                    return answer
                _log.error("payment.method_invalid", method=method.name)
            except Exception as error:  # noqa: BLE001 - a plugin may raise anything
                name = type(error).__name__
                _log.warning("payment.method_silent", method=method.name, error=name)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, self.timing.sweep_s)
