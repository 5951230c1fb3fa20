"""One request on Hypercorn: its body comes in one message, and a plain answer leaves in one piece.

Hypercorn ends each body with a message of its own, and hands each header of each answer through
two checks that ours have passed when they were made.
"""

import asyncio
import functools
import weakref
from typing import Any, cast

from h11 import DONE, SEND_RESPONSE, EndOfMessage, Response
from hypercorn.protocol.events import Body, EndBody, Event, Request, StreamClosed
from hypercorn.protocol.http_stream import ASGIHTTPState, HTTPStream
from hypercorn.typing import ASGISendEvent

from gateway.web.front.answers import WHOLE_ANSWER
from gateway.web.server.connection_limits import WRITE_BUFFER_BYTES
from gateway.web.server.unread import OUTBOX

# Their answers have no body.
_BODILESS = (204, 304)
_ENDED = EndOfMessage()


class Stream(HTTPStream):
    """A request and its answer."""

    _held: Body | None = None
    # Puts a message into the app's queue; None where the request reached no app.
    app_put: Any = None

    async def handle(self, event: Event) -> None:
        """Take a part of the request; a part of its body waits for the next one."""
        if isinstance(event, StreamClosed) and self.state is not ASGIHTTPState.REQUEST:
            # The answer has begun. The app's queue takes a few messages only, and an app that
            # reads no more would wait for room in it itself.
            self._forget_unread()
        if isinstance(event, Body):
            await self.hand_on()
            self._held = event
        elif isinstance(event, EndBody) and self._held is not None and not self.closed:
            data, self._held = bytes(self._held.data), None
            await self.app_put({"type": "http.request", "body": data, "more_body": False})
        else:
            await super().handle(event)
            if isinstance(event, Request):
                # The scope belongs to the stream: if it held the stream, both would wait for the
                # garbage collector.
                write = functools.partial(write_whole, weakref.ref(self))
                extensions = cast(dict[str, Any], self.scope["extensions"])
                extensions[WHOLE_ANSWER] = write
                extensions[OUTBOX] = cast(Any, self.send).__self__.outbox

    async def app_send(self, message: ASGISendEvent | None) -> None:
        """Send what the app says, or end with the app (None)."""
        if message is None:
            self._forget_unread()
        await super().app_send(message)
        if message is None:
            await cast(Any, self.send).__self__.end_stream(self)

    def _forget_unread(self) -> None:
        """Drop what the app has not read of its request, so that no task waits for room."""
        if self.app_put is None:
            return
        unread: asyncio.Queue[Any] = self.app_put.__self__
        while not unread.empty():
            unread.get_nowait()

    async def hand_on(self) -> None:
        """Give the app the part of the body that waits: nothing has come after it yet."""
        if self._held is not None:
            held, self._held = self._held, None
            await super().handle(held)


def write_whole(stream_of: "weakref.ref[Stream]", status: int, lines: bytes, body: bytes) -> bool:
    """Write an answer in one piece; False where Hypercorn itself has more to do about it."""
    stream = stream_of()
    if stream is None or stream.closed or stream.state is not ASGIHTTPState.REQUEST:
        return False
    protocol: Any = cast(Any, stream.send).__self__
    # A longer one waits for its client, and is counted meanwhile.
    is_short = len(body) <= WRITE_BUFFER_BYTES and status not in _BODILESS
    if not is_short or not _is_plain(stream) or not protocol.may_write_whole():
        return False
    for event in (_begun(status), _ENDED):
        protocol.connection.send(event)
    own = b"".join(b"%b: %b\r\n" % field for field in stream.config.response_headers("h11"))
    protocol.write_now(b"".join((b"HTTP/1.1 %d \r\n" % status, lines, own, b"\r\n", body)))
    stream.state = ASGIHTTPState.CLOSED
    return True


@functools.cache
def _begun(status: int) -> Response:
    """Return what h11 hears of an answer; the bytes mean nothing to what it decides after it."""
    return Response(status_code=status, headers=[(b"content-length", b"0")])


def _is_plain(stream: HTTPStream) -> bool:
    """Whether the connection stays after the answer, and the answer has a body."""
    scope = stream.scope
    names = (name for name, _ in scope["headers"])
    return (
        scope["method"] != "HEAD" and scope["http_version"] == "1.1" and b"connection" not in names
    )


def is_ready(connection: Any) -> bool:
    """Whether h11 has read a whole request, and nothing of its answer was sent."""
    return connection.our_state is SEND_RESPONSE and connection.their_state is DONE
