"""Undoes the content codings of a response, which were not asked for.

Stores send the header that an object was uploaded with, even if it says nothing about the bytes:
`aws-chunked` of an upload, `gzip` of a file that was never compressed, or a charset. So the bytes
decide. A coding that is not found in them is ignored.
"""

import re
import zlib

from gateway.errors import Transient

# In one response. Several in a row are rare.
_MAX_CODINGS = 4
# Of one gzip stream: each costs a copy of the rest.
_MAX_MEMBERS = 16
_GZIP = b"\x1f\x8b"
# Compressions that Python cannot decode before 3.14, or at all.
_UNREADABLE = ("br", "compress", "dcb", "dcz", "x-compress", "zstd")
# Beginnings of files that are certainly not compressed as a whole.
_PLAIN = (b"\x89PNG\r\n", b"\xff\xd8\xff", b"RIFF", b"GIF8", b"%PDF-")
# gzip or zlib, and a deflate stream without a header.
_WITH_HEADER, _BARE = 32 + zlib.MAX_WBITS, -zlib.MAX_WBITS
_CHUNK = re.compile(rb"([0-9a-fA-F]{1,8})(?:;[^\r\n]{0,200})?\r\n")


class TooLarge(Transient):
    """The response exceeds the size limit."""


def undo_codings(body: bytes, header: str, *, max_bytes: int) -> bytes:
    """Return a body without the codings that its Content-Encoding lists.

    Raises `TooLarge` beyond `max_bytes`, and `Transient` for a coding that cannot be undone.
    """
    codings = [coding.strip().lower() for coding in header.split(",")]
    if len(codings) > _MAX_CODINGS:
        raise Transient("The answer has too many content codings.")
    for coding in reversed(codings):
        if coding == "aws-chunked":
            body = _without_chunks(body)
        elif coding in ("gzip", "x-gzip") and body.startswith(_GZIP):
            body = _decompress(body, _WITH_HEADER, max_bytes)
        elif coding == "deflate" and not body.startswith(_PLAIN):
            body = _inflate(body, max_bytes)
        elif coding in _UNREADABLE and not body.startswith(_PLAIN):
            raise Transient(f"The answer is compressed as {coding}, though that was not asked for.")
    return body


def _inflate(body: bytes, max_bytes: int) -> bytes:
    """Decode `deflate`, which some servers send without its header."""
    try:
        return _decompress(body, _WITH_HEADER, max_bytes)
    except TooLarge:
        raise
    except Transient:
        return _decompress(body, _BARE, max_bytes)


def _decompress(body: bytes, wbits: int, max_bytes: int) -> bytes:
    """Decode a stream; what follows its members is ignored."""
    data = bytearray()
    for _ in range(_MAX_MEMBERS):
        decoder = zlib.decompressobj(wbits)
        try:
            data += decoder.decompress(body, max_bytes + 1 - len(data))
        except zlib.error:
            raise Transient("The compressed answer is damaged.") from None
        if len(data) > max_bytes:
            raise TooLarge(f"The answer has more than {max_bytes} bytes.")
        if not decoder.eof:
            raise Transient("The compressed answer is cut off.")
        body = decoder.unused_data
        if not body.startswith(_GZIP):
            return bytes(data)
    raise Transient("The compressed answer has too many parts.")


def _without_chunks(body: bytes) -> bytes:
    """Remove the frames of an upload to S3; return a body without such frames unchanged."""
    data, start = bytearray(), 0
    while (chunk := _CHUNK.match(body, start)) is not None:
        size = int(chunk[1], 16)
        if size == 0:
            # Trailers may follow, such as a checksum.
            return bytes(data)
        end = chunk.end() + size
        if body[end : end + 2] != b"\r\n":
            return body
        data += body[chunk.end() : end]
        start = end + 2
    return body
