"""Batches: payments that arrive during a send are settled together in one transaction.

The first payment is sent at once. Payments that arrive until that send has ended, or for at most a
second, share one transaction through Multicall3. A single buyer therefore never waits.

A payment is in one batch at most. If the batch did not settle it, it is sent alone. Accounts with
code are never batched, because their code could use up the gas of the others.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import attrs
import structlog

from gateway import Payment, PluginContext
from gateway.chain.smart_wallets import KEY_GAS, is_signed_by_key
from gateway.chain.transactions import MULTICALL3, UNKNOWN, Call, Known
from gateway_local_settler.keys import SettlementKeys

# For the transaction itself and Multicall3's loop. 100 payments, the most that settings allow, have
# 15,050,000 gas. Base allows a transaction 2^24 = 16,777,216 (EIP-7825; Base docs, "Throughput and
# limits"), and a block 40,000,000 since 2026-11-05: 400,000,000 before, a tenth by base/base#4565.
_OWN_GAS = 50_000
_MIN = 2
_MAX_WAIT_S = 1.0
_log = structlog.get_logger()


@attrs.frozen(eq=False, repr=False)
class _Waiting:
    """A payment waiting for its batch. `sent` gets the result of `Settler.submit`."""

    payment: Payment
    call: Call
    sent: asyncio.Future[str | None]

    def finish(self, outcome: str | BaseException | None) -> None:
        """Pass the outcome to the payment's driver, unless it has given up."""
        if self.sent.done():
            return
        if isinstance(outcome, BaseException):
            self.sent.set_exception(outcome)
        else:
            self.sent.set_result(outcome)


class Batches:
    """Collects waiting payments and sends them together."""

    def __init__(
        self, keys: SettlementKeys, context: PluginContext, is_over: Callable[[], Awaitable[bool]]
    ) -> None:
        """`is_over` returns whether failed settlements burned more gas than the operator allows."""
        self._keys = keys
        self._context = context
        self._is_over = is_over
        self._most = context.settings.settlement_batch
        self._queue: list[_Waiting] = []
        # Sends in progress: single payments and batches.
        self._sending = 0
        self._batches: set[asyncio.Task[None]] = set()
        # Whether Multicall3 is deployed; None before the first check.
        self._has_multicall: bool | None = None

    async def submit(self, payment: Payment, call: Call, known: Known = UNKNOWN) -> str | None:
        """Resend the payment's signed transaction, or sign and send one, alone or in a batch.

        Takes, returns and raises the same as `SettlementKeys.submit`.
        """
        # A first submit finds none, and the write checks it.
        if not known.is_first and (sent := await self._keys.resend(payment)):
            return sent
        if not self._sending and not self._queue:
            return await self._send_first(payment, call, known)
        loop = asyncio.get_running_loop()
        waiting = _Waiting(payment, call, loop.create_future())
        self._queue.append(waiting)
        # A slow send delays the next payment by no more than this.
        timer = loop.call_later(_MAX_WAIT_S, self._start_batch)
        try:
            return await waiting.sent
        finally:
            timer.cancel()

    async def _send_first(self, payment: Payment, call: Call, known: Known) -> str | None:
        self._sending += 1
        try:
            return await self._keys.send_new(payment, call, known)
        finally:
            self._sending -= 1
            self._continue()

    def _continue(self) -> None:
        if not self._sending:
            self._start_batch()

    def _start_batch(self) -> None:
        """Send the waiting payments, up to the size of a batch."""
        batch, self._queue = self._queue[: self._most], self._queue[self._most :]
        batch = [each for each in batch if not each.sent.done()]
        if not batch:
            return
        self._sending += 1
        task = asyncio.create_task(self._send_batch(batch), name="settle-batch")
        self._batches.add(task)
        task.add_done_callback(self._end_batch)

    def _end_batch(self, task: asyncio.Task[None]) -> None:
        self._batches.discard(task)
        self._sending -= 1
        if not task.cancelled():
            self._continue()

    async def _send_batch(self, batch: Sequence[_Waiting]) -> None:
        # They belong to the request that started it; the batch has several.
        structlog.contextvars.clear_contextvars()
        try:
            left = await self._send_together(batch)
        except Exception as error:  # noqa: BLE001 - each driver gets it, and retries
            for each in batch:
                each.finish(error)
            return
        await asyncio.gather(*(self._send_alone(each) for each in left))

    async def _send_alone(self, waiting: _Waiting) -> None:
        try:
            waiting.finish(await self._keys.submit(waiting.payment, waiting.call))
        except Exception as error:  # noqa: BLE001 - its driver gets it, and retries
            waiting.finish(error)

    async def _send_together(self, batch: Sequence[_Waiting]) -> Sequence[_Waiting]:
        """Send a batch of the eligible payments. Returns those that still have to be sent."""
        fit = await self._find_fit(batch) if len(batch) > 1 else []
        if len(fit) < _MIN:
            return batch
        try:
            sent = await self._keys.send_batch([(each.payment, each.call) for each in fit], gas_of)
        except ValueError:
            _log.warning("settlement.no_multicall", address=MULTICALL3)
            self._has_multicall = False
            return batch
        if sent is None:
            return batch
        tx_hash, payments = sent
        _log.info("settlement.batch", transaction=tx_hash, payments=len(payments))
        for each in fit:
            if each.payment.id in payments:
                each.finish(tx_hash)
        return [each for each in batch if each.payment.id not in payments]

    async def _find_fit(self, batch: Sequence[_Waiting]) -> list[_Waiting]:
        """Return the eligible payments: of plain accounts, without an earlier transaction."""
        if not await self._can_batch():
            return []
        fits = await asyncio.gather(*(self._fits(each.payment) for each in batch))
        return [each for each, fit in zip(batch, fits, strict=True) if fit]

    async def _can_batch(self) -> bool:
        if not self._has_multicall:
            is_there = bool(await self._context.chain.code(MULTICALL3))
            if not is_there and self._has_multicall is None:
                _log.warning("settlement.no_multicall", address=MULTICALL3)
            self._has_multicall = is_there
        return self._has_multicall and not await self._is_over()

    async def _fits(self, payment: Payment) -> bool:
        signed = payment.authorization
        if signed is None or not is_signed_by_key(signed, self._context.settings.chain):
            return False
        if await self._context.journal.nonces_of(payment.id, *self._keys.addresses):
            return False
        return not await self._context.chain.code(signed.sender)

    async def close(self) -> None:
        """Stop. Signed transactions are stored, and are sent again after the next start."""
        self._queue.clear()
        for task in list(self._batches):
            task.cancel()
        await asyncio.gather(*self._batches, return_exceptions=True)


def gas_of(count: int) -> int:
    """Return the gas limit of a transaction that settles `count` payments."""
    return _OWN_GAS + count * KEY_GAS
