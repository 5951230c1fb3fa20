"""WAV: one block of plain samples, written again under a header that is right."""

import struct
from collections.abc import Iterator

import attrs

from gateway_media.child.bounds import CUT_OFF, UnfitError, check_form, priced_seconds

_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_BITS = {_PCM: (8, 16, 24, 32), _FLOAT: (32, 64)}
# A program that cannot seek leaves no size, or a very large one, and writes to the end.
_STREAMED = 0x7FFFF000
_FORM = struct.Struct("<HHIIHH")


@attrs.frozen(kw_only=True)
class Form:
    """The form of plain samples."""

    tag: int
    channels: int
    rate: int
    bits: int

    @property
    def frame_bytes(self) -> int:
        """The bytes of one sample of all channels."""
        return self.channels * self.bits // 8


def read(data: bytes) -> tuple[float, bytes]:
    """Return the priced seconds of a WAV, and the WAV of the measured samples."""
    form, samples = _parse(data)
    return priced_seconds(len(samples) // form.frame_bytes, form.rate), _write(form, samples)


def repair(data: bytes) -> tuple[float, bytes]:
    """Return the seconds of a provider's WAV, and the WAV with a right header."""
    form, samples = _parse(data)
    return len(samples) / form.frame_bytes / form.rate, _write(form, samples)


def _parse(data: bytes) -> tuple[Form, bytes]:
    form, samples = None, None
    for name, body, size in _chunks(data):
        if name == b"fmt ":
            if form is not None:
                raise UnfitError("has two headers")
            form = _read_form(body)
        elif name == b"data":
            if form is None or samples is not None:
                raise UnfitError("has not one header before one block of samples")
            if len(body) < size < _STREAMED:
                raise UnfitError(CUT_OFF)
            samples = body[: len(body) // form.frame_bytes * form.frame_bytes]
    if form is None or samples is None:
        raise UnfitError("is no WAV with samples")
    return form, samples


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes, int]]:
    """Yield name, content and promised size of each chunk, also beyond the promised file size."""
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise UnfitError("is no WAV")
    at = 12
    while at + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, at)
        if name == b"data" and not size:
            size = _STREAMED
        yield name, data[at + 8 : at + 8 + size], size
        # Chunks begin at even offsets.
        at += 8 + size + size % 2


def _read_form(body: bytes) -> Form:
    if len(body) < _FORM.size:
        raise UnfitError("has no whole header")
    tag, channels, rate, _, _, bits = _FORM.unpack_from(body)
    if tag == _EXTENSIBLE:
        # The sub-format begins with the tag.
        tag = int.from_bytes(body[24:26], "little")
    if bits not in _BITS.get(tag, ()):
        raise UnfitError("is a WAV without plain samples of 8, 16, 24 or 32 bits")
    check_form(rate, channels)
    return Form(tag=tag, channels=channels, rate=rate, bits=bits)


def _write(form: Form, samples: bytes) -> bytes:
    size = form.frame_bytes
    head = _FORM.pack(form.tag, form.channels, form.rate, form.rate * size, size, form.bits)
    body = b"WAVEfmt " + struct.pack("<I", len(head)) + head
    body += b"data" + struct.pack("<I", len(samples)) + samples + bytes(len(samples) % 2)
    return b"RIFF" + struct.pack("<I", len(body)) + body
