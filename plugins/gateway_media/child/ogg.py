"""Ogg (RFC 3533) with a single stream of Opus or Vorbis; all else is refused."""

import struct
import zlib
from collections.abc import Iterator

import attrs

from gateway_media.child import opus
from gateway_media.child.bounds import CUT_OFF, MOST_SECONDS, UnfitError, check_form, priced_seconds
from gateway_media.child.decoder import decode

_HEAD = struct.Struct("<4sBBqIIIB")
_CONTINUED, _FIRST, _LAST = 1, 2, 4
_CRC = slice(22, 26)
_GRANULE = slice(6, 14)
# Lacing values below it end a packet.
_FULL = 255
# Of a page in which no packet ends.
_NO_STAMP = -1
OTHER_STAMPS = "has time stamps that do not match its packets"
# Later than any sample.
_FAR = 1 << 40
# The byte with the sizes of both blocks, as powers of 2.
_VORBIS_BLOCKS, _VORBIS_HEAD_BYTES = 28, 30
# The samples that may be left out of the packets.
_MOST_CUT_S = 0.1
# Stamps that differ more do not belong to this sound.
_TOLERANCE_S = 1.0
_MOST_DELAY = 3840
_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


@attrs.define
class _Page:
    at: int
    end: int
    flags: int
    granule: int
    serial: int
    number: int
    lacing: bytes
    body: bytes


def read(data: bytes) -> tuple[float, bytes]:
    """Return the priced seconds of an Ogg; its bytes stay as they are."""
    pages = list(_pages(data))
    _check_single(pages)
    packets = _packets(pages)
    first = next(packets, b"")
    if first.startswith(b"OpusHead"):
        seconds = _read_opus(first, packets, pages[-1].granule)
        decode(data, most_seconds=MOST_SECONDS)
        return seconds, b""
    if first.startswith(b"\1vorbis") and len(first) == _VORBIS_HEAD_BYTES:
        return _read_vorbis(data, first, pages[-1]), b""
    raise UnfitError("is no Ogg with Opus or Vorbis")


def checksum(page: bytes) -> int:
    """Return the checksum of a page whose own is zero: CRC-32 with the bits in Ogg's order."""
    reflected = zlib.crc32(page.translate(_REVERSED), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return int(f"{reflected:032b}"[::-1], 2)


def _pages(data: bytes) -> Iterator[_Page]:
    at = 0
    while at < len(data):
        if data[at : at + 4] != b"OggS"[: len(data) - at]:
            raise UnfitError("has other data between its pages" if at else "is no Ogg")
        if at + _HEAD.size > len(data):
            raise UnfitError(CUT_OFF)
        _, version, flags, granule, serial, number, crc, count = _HEAD.unpack_from(data, at)
        begin = at + _HEAD.size + count
        lacing = data[at + _HEAD.size : begin]
        end = begin + sum(lacing)
        if end > len(data) or len(lacing) < count:
            raise UnfitError(CUT_OFF)
        page = data[at:end]
        if version or checksum(page[: _CRC.start] + bytes(4) + page[_CRC.stop :]) != crc:
            raise UnfitError("is damaged")
        yield _Page(at, end, flags, granule, serial, number, lacing, data[begin:end])
        at = end


def _check_single(pages: list[_Page]) -> None:
    """Raise `UnfitError` for several streams, one after the other or side by side."""
    if not pages or not pages[0].flags & _FIRST:
        raise UnfitError("is no Ogg")
    if any(page.flags & _FIRST or page.serial != pages[0].serial for page in pages[1:]):
        raise UnfitError("has several streams")
    if any(page.flags & _LAST for page in pages[:-1]):
        raise UnfitError("has pages after its end")
    if any(page.number != pages[0].number + index for index, page in enumerate(pages)):
        raise UnfitError("lacks pages")
    stamps = [page.granule for page in pages if page.granule != _NO_STAMP]
    if stamps != sorted(stamps):
        raise UnfitError(OTHER_STAMPS)


def _packets(pages: list[_Page]) -> Iterator[bytes]:
    parts: list[bytes] = []
    for page in pages:
        if bool(page.flags & _CONTINUED) != bool(parts):
            raise UnfitError("is damaged")
        at = 0
        for size in page.lacing:
            parts.append(page.body[at : at + size])
            at += size
            if size < _FULL:
                yield b"".join(parts)
                parts = []
    if parts:
        raise UnfitError(CUT_OFF)


def _read_opus(head: bytes, packets: Iterator[bytes], granule: int) -> float:
    """Return the seconds by all packets (RFC 7845)."""
    if len(head) < 19 or head[18]:  # noqa: PLR2004 - family 0: mono or stereo
        raise UnfitError("has more than two channels")
    check_form(opus.RATE, head[9])
    if not next(packets, b"").startswith(b"OpusTags"):
        raise UnfitError("is damaged")
    lengths = [opus.packet_samples(packet) for packet in packets]
    if not lengths:
        raise UnfitError("has no samples")
    # Not all readers leave an encoder's delay out, which is short.
    skipped = min(int.from_bytes(head[10:12], "little"), _MOST_DELAY)
    found = sum(lengths)
    samples = _agreed(found, granule, lengths[-1], opus.RATE) - skipped
    return max(samples / opus.RATE, found / opus.RATE - _MOST_CUT_S)


def _read_vorbis(data: bytes, head: bytes, last: _Page) -> float:
    """Return the seconds of all decoded samples, also behind the promised end."""
    page = bytearray(data[last.at : last.end])
    page[_GRANULE] = _FAR.to_bytes(8, "little")
    page[_CRC] = bytes(4)
    page[_CRC] = checksum(bytes(page)).to_bytes(4, "little")
    decoded = decode(data[: last.at] + bytes(page), most_seconds=MOST_SECONDS)
    if not decoded.frames:
        raise UnfitError("has no samples")
    # A packet adds half of a long block at most.
    most = (1 << (head[_VORBIS_BLOCKS] >> 4)) // 2
    samples = _agreed(decoded.frames, last.granule, most, decoded.rate)
    least = decoded.frames - int(decoded.rate * _MOST_CUT_S)
    return priced_seconds(max(samples, least), decoded.rate)


def _agreed(found: int, promised: int, last: int, rate: int) -> int:
    """Return the number of samples, by those found and by the last page's stamp."""
    if abs(found - promised) > rate * _TOLERANCE_S:
        raise UnfitError(OTHER_STAMPS)
    # The end of the last packet may be left out.
    return promised if found - last < promised <= found else max(found, promised)
