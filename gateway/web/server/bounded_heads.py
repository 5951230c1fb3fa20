"""h11 with bounds for heads, trailers and short chunks; h11 itself bounds incomplete heads only."""

import re

import h11

from gateway.web.server.connection_limits import (
    MAX_HEAD_BYTES,
    MAX_HEADERS,
    MAX_SHORT_CHUNKS,
    SHORT_CHUNK_BYTES,
)

# How much h11 gets at once where lines are expected. It reads all headers that it has in one go.
PIECE_BYTES = 4 * 1024
_TOO_LARGE = 431
_BLANK_LINE = re.compile(rb"\n\r?\n")


class BoundedConnection(h11.Connection):
    """A server's connection that refuses long heads, many headers and many short chunks."""

    # Of the body that is read.
    _short_chunks = 0

    def __init__(self) -> None:
        super().__init__(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return what the client has sent; raises `RemoteProtocolError` for too much of it."""
        if self.their_state is h11.IDLE:
            waiting, _ = self.trailing_data
            blank = _BLANK_LINE.search(waiting)
            _check(waiting[: blank.end()] if blank is not None else waiting)
            self._short_chunks = 0
        event = super().next_event()
        if event is h11.NEED_DATA and self.their_state is h11.SEND_BODY:
            # The rest of a piece: a chunk's first line, or a trailer.
            _check(self.trailing_data[0])
        elif isinstance(event, h11.Data) and event.chunk_start:
            self._short_chunks += len(event.data) < SHORT_CHUNK_BYTES
            if self._short_chunks > MAX_SHORT_CHUNKS:
                raise h11.RemoteProtocolError("Too many short chunks.")
        elif isinstance(event, h11.EndOfMessage) and len(event.headers) > MAX_HEADERS:
            raise _too_large()
        return event


def _check(lines: bytes) -> None:
    # Beside the headers there are the request's line and the blank one.
    if len(lines) > MAX_HEAD_BYTES or lines.count(b"\n") > MAX_HEADERS + 2:
        raise _too_large()


def _too_large() -> h11.RemoteProtocolError:
    return h11.RemoteProtocolError("Too many headers.", error_status_hint=_TOO_LARGE)
