"""Server-sent events (WHATWG HTML §9.2) on Quart.

Quart ends an answer after `RESPONSE_TIMEOUT`, and a stream takes longer. So each event has a time
of its own in which the client must take it.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, cast

from quart import Request
from quart.asgi import ASGIHTTPConnection

from gateway.web.server.connection_limits import IDLE_S

EVENT_STREAM = "text/event-stream"
# In a request's scope: what is released once its answer has ended, whatever ended it.
_HELD = "gateway.held"


class EventConnection(ASGIHTTPConnection):
    """One request to Quart: releases what its answer holds, and bounds each event of a stream."""

    _is_answered = False
    _reading: asyncio.Task[Any] | None = None

    async def __call__(self, receive: Any, send: Any) -> None:
        """Answer the request."""
        with contextlib.ExitStack() as held:
            cast(dict[str, Any], self.scope)[_HELD] = held

            # Quart needs some turns of the loop to end a request whose client hung up, and that
            # client may be back before them: what the answer held is free at once.
            async def receive_or_release() -> Any:
                message = await receive()
                if message["type"] == "http.disconnect":
                    held.close()
                return message

            await super().__call__(receive_or_release, send)

    async def handle_request(self, request: Request, send: Any) -> None:
        """Have the app make the answer, and send it."""
        try:
            await super().handle_request(request, _bounded(send))
        finally:
            self._is_answered = True
            if self._reading is not None:
                self._reading.cancel()

    async def handle_messages(self, request: Request, receive: Any, *more: Any) -> None:
        """Read the request's body until the answer has ended.

        Since 0.23 Quart reads on until the server reports the end of the connection. If a client
        does not take its answer, the server would wait for Quart meanwhile.
        """
        if not self._is_answered:
            self._reading = asyncio.current_task()
            await super().handle_messages(request, receive, *more)


def _bounded(send: Callable[[Any], Awaitable[None]]) -> Callable[[Any], Awaitable[None]]:
    """Return a `send` that raises `TimeoutError` if a client takes no event for `IDLE_S`."""
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
    """Return what is released once the answer to a request has ended, whatever ended it."""
    return cast(contextlib.ExitStack, cast(dict[str, Any], asked.scope)[_HELD])


def wants_events(asked: Request) -> bool:
    """Whether a client names a stream of events, and prefers it to JSON.

    A pattern that a stream only fits, such as `text/*`, does not ask for one.
    """
    if asked.method != "GET" or "event-stream" not in asked.headers.get("Accept", "").lower():
        return False
    kinds = ("application/json", EVENT_STREAM)
    return asked.accept_mimetypes.best_match(kinds) == EVENT_STREAM
