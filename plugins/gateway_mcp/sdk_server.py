"""Passes messages to the SDK's server, which runs inside the app from the first message on."""

import asyncio
import contextlib
import contextvars
import importlib
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any

import attrs

from gateway.running.gateway import Gateway
from gateway.tasks.notifications import LongPolls
from gateway.web.front.answers import NOT_STORED, Answer
from gateway_mcp.envelope import unsupported_revision
from gateway_mcp.linked_files import LinkedFiles

# The ASGI scope's key under which a tool finds the `Incoming` of its call.
INCOMING = "gateway.incoming"
_SERVER = "gateway_mcp.server"
# web3 and the SDK both import pydantic. Two threads that import one library may see its modules
# half initialized, so the SDK waits for web3. The limit is for a chain that does not respond.
_WARM_UP_S = 30.0
# Responses with pictures: each takes up to 4 MB until it is sent.
_MAX_PICTURED = 8
_MAX_PICTURED_PER_ADDRESS = 4
_REVISION = b"mcp-protocol-version"
_JSON = {"Content-Type": "application/json"}
_Message = MutableMapping[str, Any]
_Handle = Callable[[_Message, Callable[..., Any], Callable[..., Any]], Awaitable[None]]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Incoming:
    """The request behind a tool call."""

    # The client's key for rate limits.
    address: str
    # Unix seconds, before the body was read.
    received_at: float
    # The file that was taken out of a large message.
    file: bytes | None = attrs.field(default=None, repr=False)
    # Whether the request was counted as a purchase before it was read.
    is_counted: bool = False
    # Whether the response may contain pictures. If so, it counts as pictured until it is sent.
    admit_pictures: Callable[[], bool]
    # Reserves memory for a number of bytes, as for a request's body; raises `BodiesFull`.
    admit: Callable[[int], None]


class SdkServer:
    """The SDK's server: imported and started at the first message, stopped with the app."""

    def __init__(self) -> None:
        self.pictured = LongPolls(_MAX_PICTURED, _MAX_PICTURED_PER_ADDRESS)
        self.linked_files = LinkedFiles()
        self._opening = asyncio.Lock()
        self._closing = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._handle: _Handle | None = None
        # Protocol revisions, oldest first.
        self._revisions: Sequence[str] = ()

    async def exchange(
        self, gateway: Gateway, scope: Mapping[str, Any], data: bytes, incoming: Incoming
    ) -> Answer:
        """Return the server's response to one message."""
        handle = await self._open(gateway)
        requested = _find_header(scope, _REVISION)
        if requested is not None and requested not in self._revisions:
            return unsupported_revision(data, requested, self._revisions)
        sent = _SentResponse()
        await handle(_scope_of(scope, len(data), incoming), _receiving(data), sent.send)
        headers = NOT_STORED | (_JSON if sent.body else {})
        return Answer(sent.status, bytes(sent.body), headers)

    async def close(self) -> None:
        """Stop the server."""
        self._closing.set()
        if self._running is not None:
            await asyncio.gather(self._running, return_exceptions=True)
        await self.linked_files.close()

    async def _open(self, gateway: Gateway) -> _Handle:
        """Return the message handler; the first call starts the server."""
        async with self._opening:
            if self._handle is None or self._running is None or self._running.done():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_WARM_UP_S):
                        await gateway.lifecycle.warmed.wait()
                server = await asyncio.to_thread(importlib.import_module, _SERVER)
                self._revisions = server.REVISIONS
                self._handle = await self._start(server.make_manager(gateway))
            return self._handle

    async def _start(self, manager: Any) -> _Handle:
        """Run the SDK's manager in a task of its own, which also ends it."""
        started = asyncio.get_running_loop().create_future()

        async def run() -> None:
            try:
                async with manager.run():
                    started.set_result(None)
                    await self._closing.wait()
            except BaseException as error:
                if started.done():
                    raise
                started.set_exception(error)

        # The manager must not inherit the context of the request that starts it.
        empty = contextvars.Context()
        self._running = asyncio.get_running_loop().create_task(run(), name="mcp", context=empty)
        await started
        handle: _Handle = manager.handle_request
        return handle


@attrs.define(eq=False, repr=False)
class _SentResponse:
    """The response that the SDK sends."""

    status: int = 0
    body: bytearray = attrs.field(factory=bytearray)

    async def send(self, message: Mapping[str, Any]) -> None:
        """Receive an ASGI message."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self.body += message.get("body", b"")


def _scope_of(scope: Mapping[str, Any], length: int, incoming: Incoming) -> _Message:
    """Return the scope for the SDK. The route has checked the request already."""
    ours = {
        b"content-length": str(length).encode(),
        b"content-type": b"application/json",
        # Every response is JSON, so a client that names no media type is served as well.
        b"accept": b"application/json, text/event-stream",
    }
    headers = [pair for pair in scope["headers"] if pair[0].lower() not in ours]
    more = {"headers": [*headers, *ours.items()], "root_path": "", INCOMING: incoming}
    return {**scope, **more}


def _find_header(scope: Mapping[str, Any], name: bytes) -> str | None:
    found = (value for key, value in scope["headers"] if key.lower() == name)
    return next((value.decode("latin-1").strip() for value in found), None)


def _receiving(data: bytes) -> Callable[[], Awaitable[_Message]]:
    """Return an ASGI `receive` that returns a body once, and then blocks.

    It never reports a disconnect, which would cancel the whole exchange.
    """
    pieces = [data]

    async def receive() -> _Message:
        if pieces:
            return {"type": "http.request", "body": pieces.pop(), "more_body": False}
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    return receive
