"""Server-sent events (WHATWG HTML §9.2) on Quart.

A stream lasts longer than Quart's `RESPONSE_TIMEOUT`, so each event has a timeout of its own.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, cast

from quart import Request
from quart.asgi import ASGIHTTPConnection

from gateway.web.server.connection_limits import IDLE_S

EVENT_STREAM = "text/event-stream"
# Key of the ASGI scope: resources to release when the answer ends.
_HELD = "gateway.held"


class EventConnection(ASGIHTTPConnection):
    """One request to Quart, which releases its resources and limits the time of each event."""

    _is_answered = False
    _reading: asyncio.Task[Any] | None = None

    async def __call__(self, receive: Any, send: Any) -> None:
        """Answer the request."""
        with contextlib.ExitStack() as held:
            cast(dict[str, Any], self.scope)[_HELD] = held

            # Quart needs some loop iterations to end a request after a disconnect. The client may
            # reconnect sooner, so its resources are released at once.
            async def receive_or_release() -> Any:
                message = await receive()
                if message["type"] == "http.disconnect":
                    held.close()
                return message

            await super().__call__(receive_or_release, send)

    async def handle_request(self, request: Request, send: Any) -> None:
        """Answer the request, then stop reading it."""
        try:
            await super().handle_request(request, _bounded(send))
        finally:
            self._is_answered = True
            if self._reading is not None:
                self._reading.cancel()

    async def handle_messages(self, request: Request, receive: Any, *more: Any) -> None:
        """Read the request's body until the answer has ended.

        Since 0.23 Quart reads until the server reports the end of the connection. If a client does
        not read its answer, server and Quart would then wait for each other.
        """
        if not self._is_answered:
            self._reading = asyncio.current_task()
            await super().handle_messages(request, receive, *more)


def _bounded(send: Callable[[Any], Awaitable[None]]) -> Callable[[Any], Awaitable[None]]:
    """Return a `send` that raises `TimeoutError` if an event is not taken within `IDLE_S`."""
    is_stream = False

    async def send_in_time(message: Any) -> None:
        nonlocal is_stream
        if message["type"] == "http.response.start":
            is_stream = any(
                name.lower() == b"content-type" and value.startswith(EVENT_STREAM.encode())
                for name, value in message["headers"]
            )
        if not is_stream:
            await send(message)
            return
        async with asyncio.timeout(IDLE_S):
            await send(message)

    return send_in_time


def held_of(asked: Request) -> contextlib.ExitStack:
    """Return the resources to release when the answer to a request ends."""
    return cast(contextlib.ExitStack, cast(dict[str, Any], asked.scope)[_HELD])


def wants_events(asked: Request) -> bool:
    """Whether a client names `text/event-stream` and prefers it to JSON.

    A pattern such as `text/*` does not request a stream.
    """
    if asked.method != "GET" or "event-stream" not in asked.headers.get("Accept", "").lower():
        return False
    kinds = ("application/json", EVENT_STREAM)
    return asked.accept_mimetypes.best_match(kinds) == EVENT_STREAM
