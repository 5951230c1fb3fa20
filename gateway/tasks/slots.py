"""The workers' slots: an attempt works in one, and waits for a vendor's job without one."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable

import attrs


@attrs.define
class Slots:
    """Counts free slots; a slot that becomes free goes to the attempt that has waited longest."""

    # Below 0 while attempts that were cancelled have not ended yet.
    free: int
    on_free: Callable[[], None]
    _waiting: deque[asyncio.Future[None]] = attrs.field(factory=deque, init=False)

    def take(self) -> None:
        """Take a slot, free or not."""
        self.free -= 1

    def release(self) -> None:
        """Give a slot to an attempt that waits for one, or let it be free."""
        self.free += 1
        while self.free > 0 and self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                self.free -= 1
                waiter.set_result(None)
        if self.free > 0:
            self.on_free()

    async def wait(self) -> None:
        """Take a slot as soon as one is free."""
        if self.free > 0:
            self.take()
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            # The slot was handed over just before the cancellation.
            if waiter.done() and not waiter.cancelled():
                self.release()
            raise

    @contextlib.asynccontextmanager
    async def released(self) -> AsyncIterator[None]:
        """Release this worker's slot inside the block and take one again at its end."""
        self.release()
        try:
            yield
        except asyncio.CancelledError:
            # A cancelled attempt waits for nothing; it releases the slot again when it ends.
            self.take()
            raise
        except BaseException:
            await self._wait_again()
            raise
        await self._wait_again()

    async def _wait_again(self) -> None:
        try:
            await self.wait()
        except asyncio.CancelledError:
            self.take()
            raise
