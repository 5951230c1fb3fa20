"""Puts a span around each HTTP request; installed only where a plugin wants to be told."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import attrs

from gateway.telemetry.spans import About, Spans
from gateway.web.front.answers import WHOLE_ANSWER

_Message = MutableMapping[str, Any]
_Send = Callable[[_Message], Awaitable[None]]
_Asgi = Callable[[_Message, Any, _Send], Awaitable[None]]
# Of a path, as a span shows it: what follows may be a task, a hash or a signed file.
_SHOWN_PARTS = 3


@attrs.frozen
class TracedApp:
    """An ASGI app in front of another one."""

    behind: _Asgi
    spans: Spans

    async def __call__(self, scope: _Message, receive: Any, send: _Send) -> None:
        """Answer a request inside of its span."""
        if scope["type"] != "http":
            await self.behind(scope, receive, send)
            return
        path = "/".join(scope["path"].split("/")[:_SHOWN_PARTS])
        about: About = {"method": scope["method"], "path": path}

        async def note_and_send(message: _Message) -> None:
            if message["type"] == "http.response.start":
                about["status"] = message["status"]
                headers = {bytes(name).lower(): value for name, value in message["headers"]}
                about["request"] = bytes(headers.get(b"x-request-id", b"")).decode("latin1")
            await send(message)

        with self.spans.around("request", about):
            await self.behind(_without_whole_answers(scope), receive, note_and_send)


def _without_whole_answers(scope: _Message) -> _Message:
    """Return a copy of a scope whose answers all go by `send`, where their status is seen."""
    extensions = dict(scope.get("extensions") or {})
    extensions.pop(WHOLE_ANSWER, None)
    return {**scope, "extensions": extensions}
