"""Places to work at: as many as there are lanes; who only waits for a remote job needs none."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable

import attrs


@attrs.define
class Slots:
    """Counts free places; hands one that gets free to whoever waits longest for it."""

    free: int  # below 0 while lanes that were told to stop have not ended yet
    on_free: Callable[[], None]
    _waiting: deque[asyncio.Future[None]] = attrs.field(factory=deque, init=False)

    def take(self) -> None:
        """Take a place, free or not."""
        self.free -= 1

    def release(self) -> None:
        """Give a place to who waits for one, or let it be free."""
        self.free += 1
        while self.free > 0 and self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                self.free -= 1
                waiter.set_result(None)
        if self.free > 0:
            self.on_free()

    async def wait(self) -> None:
        """Take a place as soon as there is one."""
        if self.free > 0:
            self.take()
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.release()  # it was ours already
            raise

    @contextlib.asynccontextmanager
    async def left(self) -> AsyncIterator[None]:
        """Leave a place for others meanwhile; whoever comes out of here has one again."""
        self.release()
        try:
            yield
        except asyncio.CancelledError:
            self.take()  # to be given back at once: who is told to stop waits for nothing
            raise
        except BaseException:
            await self._back()
            raise
        await self._back()

    async def _back(self) -> None:
        try:
            await self.wait()
        except asyncio.CancelledError:
            self.take()
            raise
