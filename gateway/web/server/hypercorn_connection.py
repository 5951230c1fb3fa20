"""Hypercorn's connection without a task or timer for each read and each pause between requests.

They took more than a tenth of the processor's time of a plain answer. A client sees no difference.
"""

import asyncio
import math
from collections.abc import Callable, Coroutine
from typing import Any

import hypercorn.asyncio.run
from hypercorn.asyncio.tcp_server import MAX_RECV, TCPServer
from hypercorn.events import Closed, Event, RawData

from gateway.web.server.connection_limits import IDLE_S, WRITE_BUFFER_BYTES
from gateway.web.server.lazy_timer import LazyTimer
from gateway.web.server.unread import Outbox


class _Idleness:
    """Stands where Hypercorn has a task that it cancels and makes again with each request."""

    def __init__(self, keep_alive_s: float, is_between_requests: Callable[[], bool]) -> None:
        self._keep_alive_s = keep_alive_s
        self._head_s = min(IDLE_S, keep_alive_s)
        self._is_between_requests = is_between_requests
        self._now = asyncio.get_running_loop().time
        self._watch: asyncio.Task[None] | None = None
        # By the loop's clock, as all times; when the watch looks next.
        self._looks_at = math.inf
        # Infinite in the middle of a request.
        self.ends_at = math.inf
        # Whether the time that runs is the one between two requests.
        self.is_keeping = False

    async def restart(
        self, task_group: Any, watch: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        """Note that the connection is idle from now on."""
        self.is_keeping = self._is_between_requests()
        self.ends_at = self._now() + (self._keep_alive_s if self.is_keeping else self._head_s)
        if self._watch is not None and self.ends_at < self._looks_at:
            self._watch.cancel()
            self._watch = None
        if self._watch is None or self._watch.done():
            self._looks_at = self.ends_at
            self._watch = task_group._task_group.create_task(watch())  # noqa: SLF001 - as Hypercorn

    async def stop(self) -> None:
        """Note that the connection is not idle."""
        self.is_keeping, self.ends_at = False, math.inf

    def end(self) -> None:
        """Watch no longer: the connection has ended."""
        if self._watch is not None:
            self._watch.cancel()

    def left_s(self) -> float:
        """Return after how many seconds to look again; 0 where the connection is to be closed."""
        now = self._now()
        left_s = min(max(self.ends_at - now, 0.0), self._keep_alive_s)
        self._looks_at = now + left_s
        return left_s


class Connection(TCPServer):
    """One connection of a client."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._idleness = _Idleness(self.config.keep_alive_timeout, self._is_between_requests)
        # Hypercorn's types name its own class.
        self.idle_task: Any = self._idleness
        self.writer.transport.set_write_buffer_limits(WRITE_BUFFER_BYTES)
        self.outbox = Outbox(self.writer.transport)

    async def run(self) -> None:
        """Serve the connection to its end."""
        try:
            await super().run()
        finally:
            self.outbox.end()

    async def protocol_send(self, event: Event) -> None:
        """Do what the protocol asks for; bytes that wait for the client are counted."""
        if not isinstance(event, RawData):
            await super().protocol_send(event)
            return
        async with self.send_lock:
            try:
                self.writer.write(event.data)
                if self.writer.transport.get_write_buffer_size() > WRITE_BUFFER_BYTES:
                    self.outbox.begin_wait()
                await self.writer.drain()
                # Where the app gives the answer up, its bytes wait until the connection ends.
                self.outbox.end_wait()
            except (ConnectionError, RuntimeError):
                await self.protocol.handle(Closed())

    async def _read_data(self) -> None:
        silence = LazyTimer(
            self._longest_silence_s, lambda: self.reader.set_exception(TimeoutError())
        )
        try:
            while not self.reader.at_eof():
                silence.start()
                try:
                    data = await self.reader.read(MAX_RECV)
                except OSError:  # TimeoutError is one
                    break
                silence.stop()
                await self.protocol.handle(RawData(data))
                if self._idleness.is_keeping and not self._is_between_requests():
                    # A head has begun, and has the time of a head.
                    await self._idleness.restart(self._task_group, self._idle_timeout)
            await self.protocol.handle(Closed())
        finally:
            silence.end()
            self._idleness.end()

    def _longest_silence_s(self) -> float | None:
        """Return how long a client may be silent in a request; between requests it is idle."""
        # The setting changes with the request.
        return self.config.read_timeout if self._idleness.ends_at == math.inf else None

    def _is_between_requests(self) -> bool:
        protocol: Any = self.protocol.protocol
        between: bool = protocol.is_between_requests
        return between

    async def _idle_timeout(self) -> None:
        """Close the connection once it was idle for so long, or is idle when the server stops."""
        while left_s := self._idleness.left_s():
            try:
                async with asyncio.timeout(left_s):
                    await self.context.terminated.wait()
            except TimeoutError:
                continue
            # In the middle of a request the connection ends after its answer.
            if self._idleness.ends_at == math.inf:
                return
            break
        await asyncio.shield(self._initiate_server_close())


def watch_lightly() -> None:
    """Let every later connection of this process be a `Connection`."""
    hypercorn.asyncio.run.TCPServer = Connection  # type: ignore[assignment, attr-defined]
