"""Limits the memory of all request bodies together, and shares it fairly.

One address may use up to half of it. When memory runs out, unfinished bodies of addresses that use
more are refused first. Otherwise a few slow clients could lock out all others.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Generator
from typing import Any, Self

from werkzeug.exceptions import RequestEntityTooLarge, RequestTimeout

from gateway.concurrency.awaiting import EagerStart
from gateway.errors import BodiesFull
from gateway.web.front import Receive

SMALL_BODY_BYTES = 64 * 1024
# Shares of the memory: reserved for small bodies, and the maximum of one address.
_KEPT_FOR_SMALL = 1 / 8
_PER_ADDRESS = 1 / 2


class ClientDisconnected(Exception):
    """The client closed the connection before its answer."""


class BodyMemory:
    """Counts the bytes of all request bodies."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._by_address: Counter[str] = Counter()
        self._taken_bytes = 0
        # Bodies that are still arriving, oldest first.
        self._arriving: dict[CountedBody, None] = {}

    def take(self, body: "CountedBody", more_bytes: int, *, is_small: bool) -> bool:
        """Reserve `more_bytes` for a body, and evict others if necessary.

        Returns False if there is no room; then no other body was evicted.
        """
        own = self._by_address[body.address] + more_bytes
        kept = 0.0 if is_small else self._most_bytes * _KEPT_FOR_SMALL
        missing = self._taken_bytes + more_bytes - (self._most_bytes - kept)
        others = self._bodies_to_refuse(own, missing)
        if own > self._most_bytes * _PER_ADDRESS or others is None:
            return False
        for other in others:
            other.evict()
        self.hold(body.address, more_bytes)
        self._arriving[body] = None
        return True

    def has_room(self, address: str, more_bytes: int) -> bool:
        """Whether a small body fits without evicting another."""
        own = self._by_address[address] + more_bytes
        fits = self._taken_bytes + more_bytes <= self._most_bytes
        return fits and own <= self._most_bytes * _PER_ADDRESS

    def hold(self, address: str, more_bytes: int) -> None:
        """Count bytes, such as a small body after `has_room`; a negative number releases them."""
        self._taken_bytes += more_bytes
        self._by_address[address] += more_bytes
        if not self._by_address[address]:
            del self._by_address[address]

    def protect(self, body: "CountedBody") -> None:
        """Protect a complete body from eviction."""
        self._arriving.pop(body, None)

    def give_back(self, body: "CountedBody", taken_bytes: int) -> None:
        """Release all bytes of a body."""
        self.protect(body)
        self.hold(body.address, -taken_bytes)

    def _bodies_to_refuse(self, own: int, missing: float) -> "list[CountedBody] | None":
        """Return the oldest bodies that together free `missing` bytes; None if they are too few.

        Each belongs to an address that uses more than `own`, the total of the growing body's
        address.
        """
        takes, found = Counter[str](), []
        for body in self._arriving if missing > 0 else ():
            takes[body.address] = takes[body.address] or self._by_address[body.address]
            if takes[body.address] > own:
                takes[body.address] -= body.taken_bytes
                missing -= body.taken_bytes
                found.append(body)
            if missing <= 0:
                break
        return found if missing <= 0 else None


class CountedBody:
    """A request body that counts its bytes in a `BodyMemory`.

    A route that reads the body reserves the declared length first. Other bytes count as they
    arrive.

    It replaces Quart's `Body` (`Request.body_class`), whose interface depends on the release: 0.23
    awaits `put` and reports a lost client by `disconnect`, older ones call `append`.
    """

    memory: BodyMemory
    address_of: Callable[[], str]
    address = ""
    taken_bytes = 0
    _is_over = False
    _reading: asyncio.Timeout | None = None
    # Raised by the route's read.
    _refusal: Exception | None = None

    def __init__(self, declared_bytes: int | None, most_bytes: int | None) -> None:
        self._most_bytes = math.inf if most_bytes is None else most_bytes
        self._data = bytearray()
        self._has_data = asyncio.Event()
        self._is_complete = asyncio.Event()
        if (declared_bytes or 0) > self._most_bytes:
            self._refusal = RequestEntityTooLarge()

    def admit(self, declared_bytes: int) -> None:
        """Reserve memory for the whole body; raises `BodiesFull` if there is none."""
        if self._refusal is None and not self._take(declared_bytes):
            raise BodiesFull

    async def put(self, data: bytes) -> None:
        """Append; the name in Quart 0.23."""
        self.append(data)

    def append(self, data: bytes) -> None:
        """Store arriving bytes, or drop the whole body if there is no room."""
        if not data or self._refusal is not None:
            return
        size = len(self._data) + len(data)
        if not self._take(size):
            self.evict()
            return
        self._data += data
        self._has_data.set()
        if size > self._most_bytes:
            self._refusal = RequestEntityTooLarge()
            self.set_complete()

    def set_complete(self) -> None:
        """Let the route read the body: no more of it will arrive."""
        self.memory.protect(self)
        self._is_complete.set()
        self._has_data.set()

    def set_result(self, data: bytes) -> None:
        """Store a whole body."""
        self.append(data)
        self.set_complete()

    def disconnect(self) -> None:
        """Do nothing: Quart cancels the request of a lost client, which releases the body."""

    def clear(self) -> None:
        """Drop the bytes, but not their count."""
        self._data.clear()

    def __await__(self) -> Generator[Any, Any, bytes]:
        """Wait for the whole body."""
        if self._refusal is None:
            yield from self._is_complete.wait().__await__()
        if self._refusal is not None:
            raise self._refusal
        return bytes(self._data)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        """Return the bytes that arrived since the last piece."""
        while not (self._data or self._refusal or self._is_complete.is_set()):
            self._has_data.clear()
            await self._has_data.wait()
        if self._refusal is not None:
            raise self._refusal
        if not self._data:
            raise StopAsyncIteration
        piece = bytes(self._data)
        self._data.clear()
        return piece

    def evict(self) -> None:
        """Refuse the body and release its memory; the route's read raises `BodiesFull`."""
        self._refusal = BodiesFull()
        self._give_back()
        self.set_complete()
        if self._reading is not None and not self._reading.expired():
            self._reading.reschedule(0)

    async def read_from(self, receive: Receive, timeout_s: float) -> bytes:
        """Read the whole body from the ASGI server, without Quart's tasks.

        Raises `RequestTimeout` after `timeout_s` seconds, `BodiesFull` if the body was evicted, and
        `ClientDisconnected`.
        """
        reading = EagerStart(self._read_messages(receive))
        try:
            if not reading.is_done:
                async with asyncio.timeout(timeout_s) as self._reading:
                    await reading
        except TimeoutError:
            if not self._is_complete.is_set():
                raise RequestTimeout from None
        finally:
            self._reading = None
        whole: bytes = await self
        # Otherwise the bytes stay in memory twice while the provider checks the request.
        self.clear()
        return whole

    async def _read_messages(self, receive: Receive) -> None:
        while not self._is_complete.is_set():
            message = await receive()
            if message["type"] != "http.request":
                raise ClientDisconnected
            self.append(message.get("body", b""))
            if not message.get("more_body", False):
                self.set_complete()

    def release(self) -> None:
        """Release the memory after the request; drop bytes that still arrive."""
        self._is_over = True
        self._give_back()

    def _give_back(self) -> None:
        self._data.clear()
        if self.taken_bytes:
            self.memory.give_back(self, self.taken_bytes)
            self.taken_bytes = 0

    def _take(self, size: int) -> bool:
        more = size - self.taken_bytes
        if self._is_over:
            return False
        if more <= 0:
            return True
        self.address = self.address or self.address_of()
        if not self.memory.take(self, more, is_small=size <= SMALL_BODY_BYTES):
            return False
        self.taken_bytes += more
        if self._is_complete.is_set():
            self.memory.protect(self)
        return True
