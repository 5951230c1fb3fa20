"""Limits the memory that the bodies of all requests take together, and shares it out.

An address may take up to half of it while there is room. Where there is none, unfinished bodies of
addresses that take more are refused first. Otherwise a few slow clients could keep all others out.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Coroutine, Generator, MutableMapping
from typing import Any, Self

from werkzeug.exceptions import RequestEntityTooLarge, RequestTimeout

from gateway.concurrency.awaiting import EagerStart
from gateway.errors import BodiesFull

SMALL_BODY_BYTES = 64 * 1024
# What an ASGI server hands to an app, to get the next message of a request.
Receive = Callable[[], Coroutine[Any, Any, MutableMapping[str, Any]]]
# Shares of the whole memory: large bodies leave the first to small ones, and one address takes
# at most the second.
_KEPT_FOR_SMALL = 1 / 8
_PER_ADDRESS = 1 / 2


class HungUp(Exception):
    """The client has closed the connection before its answer."""


class BodyMemory:
    """Counts the bytes that the bodies of all requests take now."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._by_address: Counter[str] = Counter()
        self._taken_bytes = 0
        # The bodies that are still arriving, the oldest first.
        self._arriving: dict[CountedBody, None] = {}

    def take(self, body: "CountedBody", more_bytes: int, *, is_small: bool) -> bool:
        """Let a body grow by `more_bytes`, and refuse others for it where necessary.

        Returns False where there is no room; then no other body was refused.
        """
        own = self._by_address[body.address] + more_bytes
        kept = 0.0 if is_small else self._most_bytes * _KEPT_FOR_SMALL
        missing = self._taken_bytes + more_bytes - (self._most_bytes - kept)
        others = self._bodies_to_refuse(own, missing)
        if own > self._most_bytes * _PER_ADDRESS or others is None:
            return False
        for other in others:
            other.give_way()
        self._change(body.address, more_bytes)
        self._arriving[body] = None
        return True

    def has_room(self, address: str, more_bytes: int) -> bool:
        """Whether a small body fits in without any other having to give way."""
        own = self._by_address[address] + more_bytes
        fits = self._taken_bytes + more_bytes <= self._most_bytes
        return fits and own <= self._most_bytes * _PER_ADDRESS

    def hold(self, address: str, more_bytes: int) -> None:
        """Count a complete small body, for which `has_room`; a negative number gives back."""
        self._change(address, more_bytes)

    def stay(self, body: "CountedBody") -> None:
        """Keep a complete body: it is not refused for another any more."""
        self._arriving.pop(body, None)

    def give_back(self, body: "CountedBody", taken_bytes: int) -> None:
        """Give back all bytes that a body took."""
        self.stay(body)
        self._change(body.address, -taken_bytes)

    def _bodies_to_refuse(self, own: int, missing: float) -> "list[CountedBody] | None":
        """Return the oldest bodies that together free `missing` bytes; None if all are too few.

        Each belongs to an address that takes more than `own`, the bytes that the address of the
        growing body would take.
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

    def _change(self, address: str, more_bytes: int) -> None:
        self._taken_bytes += more_bytes
        self._by_address[address] += more_bytes
        if not self._by_address[address]:
            del self._by_address[address]


class CountedBody:
    """A request's body that takes its bytes from a `BodyMemory` and gives them back at the end.

    A route that reads the body takes the declared length first. Bytes that no route reads, or
    that come without a declared length, are taken as they arrive.

    It stands where Quart's `Body` does (`Request.body_class`), which changes with its releases:
    0.23 awaits `put` and reports a lost client by `disconnect`, older ones call `append`.
    """

    memory: BodyMemory
    address_of: Callable[[], str]
    address = ""
    taken_bytes = 0
    _is_over = False
    _reading: asyncio.Timeout | None = None
    # What the route's read raises.
    _refusal: Exception | None = None

    def __init__(self, declared_bytes: int | None, most_bytes: int | None) -> None:
        self._most_bytes = math.inf if most_bytes is None else most_bytes
        self._data = bytearray()
        self._has_news = asyncio.Event()
        self._is_complete = asyncio.Event()
        if (declared_bytes or 0) > self._most_bytes:
            self._refusal = RequestEntityTooLarge()

    def admit(self, declared_bytes: int) -> None:
        """Take room for the whole body; raises `BodiesFull` where there is none."""
        if self._refusal is None and not self._take(declared_bytes):
            raise BodiesFull

    async def put(self, data: bytes) -> None:
        """Do what `append` does."""
        self.append(data)

    def append(self, data: bytes) -> None:
        """Keep the bytes that arrived, or drop the whole body where there is no room."""
        if not data or self._refusal is not None:
            return
        size = len(self._data) + len(data)
        if not self._take(size):
            self.give_way()
            return
        self._data += data
        self._has_news.set()
        if size > self._most_bytes:
            self._refusal = RequestEntityTooLarge()
            self.set_complete()

    def set_complete(self) -> None:
        """Let the route read the body: it is complete, or no more of it will arrive."""
        self.memory.stay(self)
        self._is_complete.set()
        self._has_news.set()

    def set_result(self, data: bytes) -> None:
        """Keep the whole body at once."""
        self.append(data)
        self.set_complete()

    def disconnect(self) -> None:
        """Do nothing: Quart cancels the request of a lost client, and then it is released."""

    def clear(self) -> None:
        """Drop what was read."""
        self._data.clear()

    def __await__(self) -> Generator[Any, Any, bytes]:
        """Return the whole body once it is complete."""
        if self._refusal is None:
            yield from self._is_complete.wait().__await__()
        if self._refusal is not None:
            raise self._refusal
        return bytes(self._data)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        """Return what has arrived since the last piece."""
        while not (self._data or self._refusal or self._is_complete.is_set()):
            self._has_news.clear()
            await self._has_news.wait()
        if self._refusal is not None:
            raise self._refusal
        if not self._data:
            raise StopAsyncIteration
        piece = bytes(self._data)
        self._data.clear()
        return piece

    def give_way(self) -> None:
        """Refuse the body and give its room back; the route's read raises `BodiesFull`."""
        self._refusal = BodiesFull()
        self._give_back()
        self.set_complete()
        if self._reading is not None and not self._reading.expired():
            self._reading.reschedule(0)

    async def read_from(self, receive: Receive, timeout_s: float) -> bytes:
        """Read the whole body from the ASGI server, without Quart's tasks.

        Raises `RequestTimeout` after `timeout_s` seconds, `BodiesFull` where the body was refused
        for others, and `HungUp`.
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
        # The bytes would be in memory twice while the provider checks the request.
        self.clear()
        return whole

    async def _read_messages(self, receive: Receive) -> None:
        while not self._is_complete.is_set():
            message = await receive()
            if message["type"] != "http.request":
                raise HungUp
            self.append(message.get("body", b""))
            if not message.get("more_body", False):
                self.set_complete()

    def release(self) -> None:
        """Give the room back after the request; bytes that still arrive are dropped."""
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
            self.memory.stay(self)
        return True
