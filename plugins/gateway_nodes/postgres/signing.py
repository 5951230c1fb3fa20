"""Collects the transactions that wait for a key while one write of it runs."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence

from gateway.concurrency.awaiting import answer_caller
from gateway.contracts import SignedTransaction, UnsignedTransaction
from gateway.errors import StoreUnavailable
from gateway.store.signing_groups import AskedTransaction

# In one write: it holds the key's lock, and each is signed meanwhile.
_MOST = 32

Begin = Callable[[Sequence[AskedTransaction]], Awaitable[list[SignedTransaction | Exception]]]
_Waiting = list[tuple[AskedTransaction, asyncio.Future[SignedTransaction]]]


class SigningQueues:
    """One queue for each key. A key's transactions are signed in the order of the calls."""

    def __init__(self, begin: Begin) -> None:
        """`begin` runs `begin_settling_each`."""
        self._begin = begin
        self._waiting: dict[str, _Waiting] = defaultdict(list)
        self._running: dict[str, asyncio.Task[None]] = {}

    async def sign(
        self, payment_id: int, transaction: UnsignedTransaction, now: float
    ) -> SignedTransaction:
        """Return what `begin_settling` does. The write goes on if the caller is cancelled."""
        answer: asyncio.Future[SignedTransaction] = asyncio.get_running_loop().create_future()
        signer = transaction.signer
        self._waiting[signer].append((AskedTransaction(payment_id, transaction, now), answer))
        if signer not in self._running:
            work = asyncio.create_task(self._run(signer), name=f"sign-{signer}")
            self._running[signer] = work
        return await asyncio.shield(answer)

    async def _run(self, signer: str) -> None:
        group: _Waiting = []
        try:
            while waiting := self._waiting[signer]:
                group, self._waiting[signer] = waiting[:_MOST], waiting[_MOST:]
                await self._sign_group(group)
        finally:
            # None is left unless this task is cancelled.
            for _, answer in (*group, *self._waiting.pop(signer)):
                if not answer.done():
                    answer_caller(answer, StoreUnavailable())
            del self._running[signer]

    async def _sign_group(self, group: _Waiting) -> None:
        outcomes: Sequence[SignedTransaction | Exception]
        try:
            outcomes = await self._begin([asked for asked, _ in group])
        except Exception as error:  # noqa: BLE001 - every caller gets it
            outcomes = [error] * len(group)
        for (_, answer), outcome in zip(group, outcomes, strict=True):
            answer_caller(answer, outcome)
