"""What a plain request asks, and how it is answered: health, task, price, purchase.

Each calls the functions that the routes call. `fast_path` reads these from a request's head.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, MutableMapping
from typing import Any, ClassVar, Protocol

import attrs

from gateway.catalog.catalog import Registered
from gateway.concurrency.awaiting import EagerStart
from gateway.payments.methods import HeaderReader
from gateway.running.gateway import Gateway
from gateway.web.front.answers import Answer
from gateway.web.front.body_memory import SMALL_BODY_BYTES, BodyMemory, CountedBody, HungUp, Receive
from gateway.web.routes import generate, health, tasks

# A client that hangs up is looked for only after so long: most checks take less.
_UNWATCHED_S = 0.02
_Ask = Callable[[bytes], Coroutine[Any, Any, Answer]]


class Question(Protocol):
    """A plain request, read from its head."""

    # The route's path, and the limit that the request counts against.
    rule: ClassVar[str]
    limit: ClassVar[str | None]

    async def answer(self, gateway: Gateway, address: str, receive: Receive) -> Answer:
        """Return the answer; raises what the routes raise, and `HungUp`."""
        ...


@attrs.frozen
class Health:
    """`GET /api/health`."""

    rule: ClassVar[str] = health.HEALTH_RULE
    limit: ClassVar[str | None] = None

    async def answer(self, gateway: Gateway, address: str, receive: Receive) -> Answer:  # noqa: ARG002 - Question
        """Return the answer."""
        return await _while_connected(receive, health.answer_health(gateway))


@attrs.frozen
class Poll:
    """`GET /api/task/{id}`, with `?wait=` or without."""

    rule: ClassVar[str] = tasks.TASK_RULE
    limit: ClassVar[str | None] = tasks.TASK_LIMIT
    task_id: str
    wait: str

    async def answer(self, gateway: Gateway, address: str, receive: Receive) -> Answer:
        """Return the task as it is, or as it is after the wait."""
        wait_s = tasks.read_wait_s(self.wait)
        work = tasks.answer_task(gateway, self.task_id, wait_s, address)
        return await _while_connected(receive, work)


@attrs.frozen
class SmallBody:
    """A body of at most `SMALL_BODY_BYTES` that has not been read."""

    length: int
    most_s: float
    memory: BodyMemory

    async def answered(self, address: str, receive: Receive, ask: _Ask) -> Answer:
        """Return what `ask` answers to the body, whose memory is counted while it works."""
        first = EagerStart(receive())
        data = _whole_body(first)
        if data is None or not self.memory.has_room(address, len(data)):
            return await self._answered_counted(address, _receive_again(first, receive), ask)
        work = EagerStart(ask(data))
        # Nothing has waited, so the body took its room alone.
        if work.is_done:
            return work.result
        with self.memory.held(address, len(data)):
            # A file would be in memory twice while its pages are counted.
            del first, data
            async with watched(receive):
                return await work

    async def _answered_counted(self, address: str, receive: Receive, ask: _Ask) -> Answer:
        """Answer where the body is still arriving, or others may have to give way to it."""
        body = CountedBody(self.length, generate.ESCAPED_BODY_BYTES)
        body.memory, body.address_of = self.memory, lambda: address
        try:
            body.admit(self.length)
            data = await body.read_from(receive, self.most_s)
            work = ask(data)
            del data
            return await _while_connected(receive, work)
        finally:
            body.release()


@attrs.frozen
class Price:
    """`POST /api/x402/{slug}` without a payment and with a small body, or with none."""

    rule: ClassVar[str] = generate.X402_RULE
    limit: ClassVar[str | None] = generate.PRICE_LIMIT
    registered: Registered
    key: str | None
    version: int
    body: SmallBody

    async def answer(self, gateway: Gateway, address: str, receive: Receive) -> Answer:
        """Return the 402."""
        asked = generate.AskedPrice(self.registered, address, self.key, self.version)
        return await self.body.answered(
            address, receive, lambda data: generate.answer_unpaid(gateway, asked, data)
        )


@attrs.frozen
class Purchase:
    """`POST /api/x402/{slug}` with a header that pays, and a small body."""

    rule: ClassVar[str] = generate.X402_RULE
    limit: ClassVar[str | None] = generate.X402_LIMIT
    registered: Registered
    key: str | None
    version: int
    body: SmallBody
    read: HeaderReader

    async def answer(self, gateway: Gateway, address: str, receive: Receive) -> Answer:
        """Return the started task, or the 402 that says why the payment is refused."""
        chosen = gateway.payments.methods.choose(self.read)
        asked = generate.AskedPrice(self.registered, address, self.key, self.version)
        return await self.body.answered(
            address, receive, lambda data: generate.answer_x402(gateway, asked, data, chosen)
        )


@attrs.frozen
class DirectPurchase:
    """`POST /api/proxy-generate` with a small body."""

    rule: ClassVar[str] = generate.DIRECT_RULE
    limit: ClassVar[str | None] = generate.DIRECT_LIMIT
    key: str | None
    body: SmallBody

    async def answer(self, gateway: Gateway, address: str, receive: Receive) -> Answer:
        """Return the started task."""
        return await self.body.answered(
            address, receive, lambda data: generate.answer_direct(gateway, data, self.key, address)
        )


def _whole_body(first: EagerStart[MutableMapping[str, Any]]) -> bytes | None:
    """Return the body where it came with the head and is small, as nearly all do; else None."""
    if not first.is_done or first.result["type"] != "http.request":
        return None
    data: bytes = first.result.get("body", b"")
    return None if first.result.get("more_body") or len(data) > SMALL_BODY_BYTES else data


def _receive_again(first: EagerStart[MutableMapping[str, Any]], receive: Receive) -> Receive:
    """Return a `receive` that gives the message that was asked for already, then the others."""
    asked: list[EagerStart[MutableMapping[str, Any]]] = [first]

    async def give() -> MutableMapping[str, Any]:
        return await (asked.pop() if asked else receive())

    return give


async def _while_connected(receive: Receive, work: Coroutine[Any, Any, Answer]) -> Answer:
    """Return the answer; cancel the work and raise `HungUp` where the client hangs up before it."""
    begun = EagerStart(work)
    if begun.is_done:
        return begun.result
    async with watched(receive):
        return await begun


@contextlib.asynccontextmanager
async def watched(receive: Receive) -> AsyncIterator[None]:
    """Cancel the block and raise `HungUp` where the client hangs up before its end."""
    watching: list[asyncio.Task[None]] = []
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(None) as block:
            timer = loop.call_later(
                _UNWATCHED_S, lambda: watching.append(loop.create_task(_watch(receive, block)))
            )
            try:
                yield
            finally:
                timer.cancel()
                for task in watching:
                    task.cancel()
    except TimeoutError:
        if block.expired():
            raise HungUp from None
        raise


async def _watch(receive: Receive, block: asyncio.Timeout) -> None:
    """End the block once the client hangs up."""
    while (await receive())["type"] != "http.disconnect":
        pass
    block.reschedule(0)
