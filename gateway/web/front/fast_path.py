"""Answers plain requests to the declared routes without Quart, to save CPU.

Any unusual request goes to Quart unread (docs/architecture.md).
"""

import asyncio
import contextlib
import functools
import re
from collections.abc import AsyncIterator, Callable, Mapping
from typing import cast

import attrs
from quart import Quart

from gateway.concurrency.awaiting import EagerStart
from gateway.running.gateway import Gateway
from gateway.web.front import Asgi, Message, Receive, Send
from gateway.web.front.answers import Answer, answer_error
from gateway.web.front.body_memory import (
    SMALL_BODY_BYTES,
    BodyMemory,
    ClientDisconnected,
    CountedBody,
)
from gateway.web.front.current import EXTENSION, client_address, peer_of
from gateway.web.front.headers import begin_request, finish
from gateway.web.front.routing import Route, RouteTable
from gateway.web.server.connection_limits import OUTBOX, Outbox, UnreadMemory

_Headers = Mapping[bytes, bytes]

_LABEL = rb"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = re.compile(rb"(?:%b\.){0,8}%b(?::[0-9]{1,5})?" % (_LABEL, _LABEL))
_PART = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LENGTH = re.compile(rb"[0-9]{1,5}")
# Headers that need Quart or the server to act.
_UNUSUAL = frozenset((b"transfer-encoding", b"content-encoding", b"expect", b"upgrade"))
_JSON = (None, b"application/json", b"application/json; charset=utf-8")
# Watch for a disconnect only after this time: most answers are ready before it.
_UNWATCHED_S = 0.02


class FastPath:
    """ASGI middleware in front of Quart."""

    def __init__(self, app: Quart, table: RouteTable, memory: BodyMemory) -> None:
        # The ASGI app for all other requests.
        self.behind = cast(Asgi, app.asgi_app)
        self._app = app
        self._table = table
        self._memory = memory
        self.unread = UnreadMemory()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a plain request, and pass every other one to Quart."""
        # Missing before startup.
        gateway: Gateway | None = self._app.extensions.get(EXTENSION)
        headers = dict(scope.get("headers", ()))
        if gateway is None or scope["type"] != "http":
            await self.behind(scope, receive, send)
            return
        if not gateway.requests.begin(scope["method"], headers):
            try:
                await self._dispatch(gateway, scope, headers, receive, send)
            finally:
                gateway.requests.end()
            return
        status: int | None = None

        async def send_noted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._dispatch(gateway, scope, headers, receive, send_noted)
        finally:
            gateway.requests.end(status)

    async def _dispatch(
        self, gateway: Gateway, scope: Message, headers: _Headers, receive: Receive, send: Send
    ) -> None:
        address = _address(gateway, scope, headers)
        outbox: Outbox | None = scope.get("extensions", {}).get(OUTBOX)
        if outbox is not None:
            outbox.belong_to(self.unread, address)
        found = self._find_route(scope, headers)
        if found is None:
            await self.behind(scope, receive, send)
            return
        route, part = found
        asked = PlainAsked(
            part=part,
            address=address,
            headers=headers,
            query_string=scope["query_string"],
            receive=receive,
            memory=self._memory,
            body_s=self._app.config["BODY_TIMEOUT"],
            most_bytes=functools.partial(route.body_bytes, gateway.catalog, part),
            is_read=route.method != "POST",
        )
        await self._serve(gateway, route, asked, scope, send)

    async def _serve(
        self, gateway: Gateway, route: Route, asked: "PlainAsked", scope: Message, send: Send
    ) -> None:
        start = begin_request(asked.header("X-Request-Id") or "")
        try:
            answer = await _answer(gateway, route, asked)
        except ClientDisconnected:
            return
        timeout_s = self._app.config["RESPONSE_TIMEOUT"]
        sending = finish(gateway, start, answer, route.rule, scope, send, timeout_s)
        if answer.pieces is None:
            await sending
            return
        with contextlib.suppress(ClientDisconnected):
            async with asked.watched():
                await sending

    def _find_route(self, scope: Message, headers: _Headers) -> tuple[Route, str] | None:
        """Return the route of a plain request and its variable part; None for other requests."""
        found = self._table.find(scope["method"], scope["path"])
        if found is None or not _has_plain_head(scope, headers):
            return None
        route, part = found
        query = scope["query_string"]
        if not route.skips_quart or (part and not _PART.fullmatch(part)):
            return None
        if query and not route.plain_query.fullmatch(query):
            return None
        if route.stream and b"event-stream" in headers.get(b"accept", b"").lower():
            return None
        length = headers.get(b"content-length", b"")
        if route.method != "POST":
            return found if length in (b"", b"0") else None
        is_small = _LENGTH.fullmatch(length) and int(length) <= SMALL_BODY_BYTES
        return found if is_small and headers.get(b"content-type") in _JSON else None


@attrs.define(kw_only=True, eq=False, repr=False)
class PlainAsked:
    """A plain request: its head, and its body as it arrives."""

    part: str
    address: str
    headers: _Headers
    query_string: bytes
    receive: Receive
    memory: BodyMemory
    # Time limit for the body.
    body_s: float
    most_bytes: Callable[[], int]
    # Whether the body was read, or the request has none.
    is_read: bool
    # Whether the answer has awaited anything, so that other requests may have run.
    _has_waited: bool = False
    _end_of_body: asyncio.Event | None = None
    _whole_bytes: int = 0
    _counted: CountedBody | None = None

    def header(self, name: str) -> str | None:
        """Return the value of a header; None without it."""
        value = self.headers.get(name.lower().encode())
        return None if value is None else value.decode("latin1")

    def query(self, name: str, default: str) -> str:
        """Return a parameter of the query, which has at most one and no escapes."""
        key, _, value = self.query_string.decode().partition("=")
        return value if key == name else default

    async def read_body(self) -> bytes:
        """Return the whole body; also raises `ClientDisconnected`."""
        received = [EagerStart(self.receive())]
        if received[0].is_done and received[0].result.get("more_body"):
            # Hypercorn reports the end of a body in a message of its own.
            received.append(EagerStart(self.receive()))
        data = _whole_body(received)
        if data is None or self._has_waited or not self.memory.has_room(self.address, len(data)):
            data = await self._read_counted(received)
        else:
            self._whole_bytes = len(data)
        self.is_read = True
        if self._end_of_body is not None:
            self._end_of_body.set()
        return data

    async def _read_counted(self, received: list[EagerStart[Message]]) -> bytes:
        """Read a body that is still arriving, or that may evict others."""
        length = int(self.headers[b"content-length"])
        body = self._counted = CountedBody(length, self.most_bytes())
        body.memory, body.address_of = self.memory, lambda: self.address
        body.admit(length)
        return await body.read_from(_receive_again(received, self.receive), self.body_s)

    def begin_waiting(self) -> None:
        """Count the memory of a body that arrived with its head; most answers never wait."""
        self._has_waited = True
        self.memory.hold(self.address, self._whole_bytes)

    def release(self) -> None:
        """Release the body's memory."""
        if self._counted is not None:
            self._counted.release()
        if self._has_waited:
            self.memory.hold(self.address, -self._whole_bytes)

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Cancel the block and raise `ClientDisconnected` if the client hangs up before its end."""
        watching: list[asyncio.Task[None]] = []
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(None) as block:
                timer = loop.call_later(
                    _UNWATCHED_S, lambda: watching.append(loop.create_task(self._watch(block)))
                )
                try:
                    yield
                finally:
                    timer.cancel()
                    for task in watching:
                        task.cancel()
        except TimeoutError:
            if block.expired():
                raise ClientDisconnected from None
            raise

    async def _watch(self, block: asyncio.Timeout) -> None:
        """End the block when the client hangs up; during the body, `read_body` detects that."""
        if not self.is_read:
            self._end_of_body = asyncio.Event()
            await self._end_of_body.wait()
        while (await self.receive())["type"] != "http.disconnect":
            pass
        block.reschedule(0)


async def _answer(gateway: Gateway, route: Route, asked: PlainAsked) -> Answer:
    """Return the answer to a request, or to the error that it raises.

    Raises `ClientDisconnected`.
    """
    try:
        await route.count(gateway, asked)
        work = EagerStart(route.answer(gateway, asked))
        if work.is_done:
            return work.result
        asked.begin_waiting()
        async with asked.watched():
            return await work
    except ClientDisconnected:
        raise
    except Exception as error:  # noqa: BLE001 - as Quart: every error has an answer
        return answer_error(gateway, error, route.rule)
    except (SystemExit, KeyboardInterrupt) as error:
        # A plugin's code, such as a payment method's `read`, would end the process.
        return answer_error(gateway, RuntimeError(f"{error!r} was raised"), route.rule)
    finally:
        asked.release()


def _whole_body(received: list[EagerStart[Message]]) -> bytes | None:
    """Return a small body that arrived with the head; else None."""
    last = received[-1]
    if not last.is_done or last.result["type"] != "http.request" or last.result.get("more_body"):
        return None
    data = b"".join([message.result.get("body", b"") for message in received])
    return data if len(data) <= SMALL_BODY_BYTES else None


def _receive_again(received: list[EagerStart[Message]], receive: Receive) -> Receive:
    """Return a `receive` that first returns the messages that were requested already."""
    waiting = iter(received)

    async def give() -> Message:
        message = next(waiting, None)
        return await (receive() if message is None else message)

    return give


def _has_plain_head(scope: Message, headers: _Headers) -> bool:
    """Whether no header is repeated, the path has no escapes, and `Host` is a host name."""
    return (
        not scope.get("root_path")
        and b"%" not in (scope.get("raw_path") or b"%")
        and len(headers) == len(scope["headers"])
        and _UNUSUAL.isdisjoint(headers)
        and _is_host(headers.get(b"host", b""))
    )


# Nearly all requests name the same host.
@functools.lru_cache(maxsize=32)
def _is_host(host: bytes) -> bool:
    return _HOST.fullmatch(host) is not None


def _address(gateway: Gateway, scope: Message, headers: _Headers) -> str:
    trusted = gateway.settings.client_ip_header.lower().encode()
    forwarded = headers.get(trusted, b"").decode("latin1") if trusted else None
    return client_address(peer_of(scope), forwarded)
