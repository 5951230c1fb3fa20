"""Finds the end of each HTTP/1.1 request in a byte stream, and limits its parts.

The server's own parser still validates every request. It gets one request at a time, and none whose
end is ambiguous to a proxy in front.
"""

import re
from http import HTTPStatus

from gateway.web.server.connection_limits import (
    MAX_HEAD_BYTES,
    MAX_HEADERS,
    MAX_SHORT_CHUNKS,
    SHORT_CHUNK_BYTES,
)

# No method begins with these bytes.
_LAST_CONTROL = 0x20
_VERSION = re.compile(rb" HTTP/[0-9]\.[0-9]")
_VERSIONS = (b" HTTP/1.1", b" HTTP/1.0")
_FRAMING_FIELDS = re.compile(rb"\n(content-length|transfer-encoding)[ \t]*:([^\n]*)")
_FRAMED = (b"\ncontent-length", b"\ntransfer-encoding")
# Includes continuation lines.
_UPGRADE = re.compile(rb"\nupgrade:[^\n]*(?:\n[ \t][^\n]*)*", re.IGNORECASE)
_LENGTH = re.compile(rb"[0-9]{1,20}")
_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,20}")
_LINE_END = b"\r\n"


class RefusedError(Exception):
    """A request that the server's parser must not see."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status)
        self.status = status


class LengthBody:
    """A body with a Content-Length, or none."""

    def __init__(self, length: int) -> None:
        self._left = length
        self.is_empty = length == 0

    @property
    def is_complete(self) -> bool:
        """Whether the whole body was taken."""
        return self._left == 0

    def take(self, held: bytearray) -> bytes:
        """Remove the bytes of the body from `held`, and return them."""
        taken = bytes(held[: self._left])
        del held[: len(taken)]
        self._left -= len(taken)
        return taken


class ChunkedBody:
    """A body in chunks, and the trailers after it."""

    is_empty = False

    def __init__(self) -> None:
        self.is_complete = False
        # Bytes left of the current chunk, with its line end.
        self._left = 0
        self._short_chunks = 0
        self._is_in_trailers = False

    def take(self, held: bytearray) -> bytes:
        """Remove and return the body's bytes, except incomplete lines; raises `RefusedError`."""
        end = 0
        while end < len(held) and not self._is_in_trailers:
            if not self._left:
                line_end = held.find(_LINE_END, end)
                if line_end < 0:
                    _check_lines(held[end:], MAX_HEADERS)
                    break
                self._begin_chunk(held, end)
                end = line_end + len(_LINE_END)
            step = min(self._left, len(held) - end)
            self._left -= step
            end += step
        taken = bytes(held[:end])
        del held[:end]
        return taken + self._take_trailers(held) if self._is_in_trailers else taken

    def _begin_chunk(self, held: bytearray, start: int) -> None:
        match = _CHUNK_SIZE.match(held, start)
        if match is None:
            raise RefusedError(HTTPStatus.BAD_REQUEST)
        size = int(match[0], 16)
        self._short_chunks += 0 < size < SHORT_CHUNK_BYTES
        if self._short_chunks > MAX_SHORT_CHUNKS:
            raise RefusedError(HTTPStatus.BAD_REQUEST)
        self._is_in_trailers = size == 0
        self._left = size + len(_LINE_END) if size else 0

    def _take_trailers(self, held: bytearray) -> bytes:
        for blank in (b"\n", b"\r\n"):
            if held.startswith(blank):
                end = len(blank)
                break
        else:
            end = _head_end(held, 0)
            _check_lines(held[:end] if end else held, MAX_HEADERS + 1)
        self.is_complete = end > 0
        taken = bytes(held[:end])
        del held[:end]
        return taken


Body = LengthBody | ChunkedBody


def has_head(held: bytearray) -> bool:
    """Whether the bytes begin with a whole head."""
    return _head_end(held, 0) > 0


def take_head(held: bytearray, searched: int) -> tuple[bytes, Body] | None:
    """Remove a whole head and return it without `Upgrade`, and its body; None if incomplete.

    The first `searched` bytes contain no end of a head. Raises `RefusedError`.
    """
    if held[0] <= _LAST_CONTROL:
        raise RefusedError(HTTPStatus.BAD_REQUEST)
    end = _head_end(held, max(searched - 2, 0))
    head = bytes(held[:end] if end else held)
    # The headers, the request line and the blank line.
    _check_lines(head, MAX_HEADERS + 2)
    if not end:
        return None
    del held[:end]
    small = head.lower()
    body = _body_of(head, small)
    # A server may ignore `Upgrade` (RFC 9110 §7.8). Hypercorn would speak HTTP/2 or WebSocket.
    return (_UPGRADE.sub(b"", head) if b"\nupgrade:" in small else head), body


def _head_end(held: bytearray, start: int) -> int:
    """Return the end of the first blank line, with or without CR as in h11; 0 without one."""
    end = held.find(b"\n\r\n", start)
    short = held.find(b"\n\n", start, end if end >= 0 else len(held))
    return short + 2 if short >= 0 else end + 3 if end >= 0 else 0


def _check_lines(lines: bytes | bytearray, most: int) -> None:
    # Each field costs the parser microseconds, however short.
    if len(lines) > MAX_HEAD_BYTES or lines.count(b"\n") > most:
        raise RefusedError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)


def _body_of(head: bytes, small: bytes) -> Body:
    version = head[: head.index(b"\n")].rstrip(b"\r")[-len(b" HTTP/1.1") :]
    if version not in _VERSIONS:
        is_other = _VERSION.fullmatch(version) is not None
        raise RefusedError(
            HTTPStatus.HTTP_VERSION_NOT_SUPPORTED if is_other else HTTPStatus.BAD_REQUEST
        )
    if not any(name in small for name in _FRAMED):
        return LengthBody(0)
    lengths: set[bytes] = set()
    codings: list[bytes] = []
    for name, value in _FRAMING_FIELDS.findall(small):
        if name == b"transfer-encoding":
            codings.append(value.strip())
        else:
            lengths.update(one.strip() for one in value.split(b","))
    # The end of the request would be ambiguous.
    if lengths and (codings or len(lengths) > 1):
        raise RefusedError(HTTPStatus.BAD_REQUEST)
    if codings:
        if codings != [b"chunked"]:
            raise RefusedError(HTTPStatus.NOT_IMPLEMENTED)
        return ChunkedBody()
    length = lengths.pop() if lengths else b""
    if not _LENGTH.fullmatch(length):
        raise RefusedError(HTTPStatus.BAD_REQUEST)
    return LengthBody(int(length))
