"""Measures buyers' sounds, and checks providers' ones."""

import json
from collections.abc import Callable

from gateway.sandbox.errors import SandboxRefusal
from gateway_media.child import flac, mp3, ogg, wav
from gateway_media.child.bounds import (
    CUT_OFF,
    MOST_RESULT_SECONDS,
    UnfitError,
    check_length,
    check_size,
)
from gateway_media.child.decoder import decode
from gateway_media.child.tags import skip_tags

_Reader = Callable[[bytes], tuple[float, bytes]]
_READERS: dict[str, _Reader] = {
    ".wav": wav.read,
    ".flac": flac.read,
    ".mp3": mp3.read,
    ".ogg": ogg.read,
    ".opus": ogg.read,
}
# The media type of each format, and the formats that may be ordered of it.
_FORMATS = {
    "audio/wav": ("wav",),
    "audio/flac": ("flac",),
    "audio/mpeg": ("mp3",),
    "audio/ogg": ("ogg", "opus"),
}
_KNOWN = {name for names in _FORMATS.values() for name in names}
# Headers round lengths.
_TOLERANCE_S = 0.5


def read_sound(extension: str, data: bytes, most_bytes: str) -> tuple[bytes, bytes]:
    """Return the seconds of a sound by its samples, and the file of these samples."""
    try:
        seconds, plain = _reader_of(extension)(data)
        check_length(seconds)
        check_size(plain, most_bytes)
    except UnfitError as error:
        raise SandboxRefusal(f"The sound {error}.") from None
    return json.dumps({"seconds": seconds}).encode(), b"" if plain == data else plain


def check_sound(wanted: str, _media_type: str, received: bytes) -> tuple[bytes, bytes]:
    """Return media type and seconds of a sound; raises `SandboxRefusal` without samples."""
    data = received
    try:
        found = _media_type_of(data)
        if found == "audio/flac":
            data = data[skip_tags(data) :]
        _check_ordered(found, wanted)
        seconds, plain = _RESULTS[found](data)
        check_length(seconds, MOST_RESULT_SECONDS)
    except UnfitError as error:
        raise SandboxRefusal(f"it {error}") from None
    facts = {"media_type": found, "seconds": seconds}
    return json.dumps(facts).encode(), b"" if plain == received else plain


def _reader_of(extension: str) -> _Reader:
    if extension in _READERS:
        return _READERS[extension]
    # The extra `m4a`, which is loaded before the fork.
    from gateway_media.child import packed_sound  # noqa: PLC0415

    return packed_sound.read_m4a if extension == ".m4a" else packed_sound.read_webm


def _media_type_of(data: bytes) -> str:
    if data[:4] == b"RIFF":
        return "audio/wav"
    begin = skip_tags(data)
    if data[begin : begin + 4] == b"fLaC":
        return "audio/flac"
    if data[:4] == b"OggS":
        return "audio/ogg"
    if data.startswith((b"ID3", b"APETAGEX")) or (data[:1] == b"\xff" and data[1:2] >= b"\xe0"):
        return "audio/mpeg"
    raise UnfitError("is no WAV, FLAC, MP3 or Ogg")


def _check_ordered(found: str, wanted: str) -> None:
    if wanted in _KNOWN and wanted not in _FORMATS[found]:
        raise UnfitError(f"is {found}, and {wanted} was ordered")


def _decode(data: bytes) -> tuple[float, bytes]:
    decoded = decode(data, most_seconds=MOST_RESULT_SECONDS)
    # A header may leave the number open.
    is_known = decoded.promised < MOST_RESULT_SECONDS * decoded.rate
    if is_known and decoded.frames < decoded.promised - _TOLERANCE_S * decoded.rate:
        raise UnfitError(CUT_OFF)
    return decoded.seconds, data


_RESULTS: dict[str, _Reader] = {
    "audio/wav": wav.repair,
    "audio/flac": _decode,
    "audio/mpeg": lambda data: (mp3.measure(data), data),
    "audio/ogg": _decode,
}
