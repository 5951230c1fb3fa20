"""Measures buyers' videos, and checks providers' ones, without decoding them."""

import json

from gateway.sandbox.errors import SandboxRefusal
from gateway_media.child import boxes, ebml, mp4, webm
from gateway_media.child.bounds import (
    CUT_OFF,
    LEAST_SIDE,
    MOST_RESULT_SECONDS,
    MOST_SIDE,
    UnfitError,
    check_length,
    check_size,
)
from gateway_media.child.movie import Movie, Track

_FORMATS = {
    ".mp4": (mp4.read, boxes.blank),
    ".webm": (webm.read, ebml.blank),
}
_TYPES = {".mp4": "video/mp4", ".webm": "video/webm"}
# Headers round lengths, and count the sound.
_TOLERANCE_S = 1.0


def read_video(extension: str, data: bytes, most_bytes: str) -> tuple[bytes, bytes]:
    """Return the greatest claim about a video's seconds, its sides, and the file without the rest.

    The rest are the parts that are unknown here, where another reader could find another length.
    """
    read, blank = _FORMATS[extension]
    try:
        movie = read(data)
        movie.check_sold(videos=1, least_sounds=0)
        _check_sound(movie)
        picture = _check_sides(movie)
        check_length(movie.sold_s)
        plain = blank(data, movie.unknown)
        check_size(plain, most_bytes)
    except UnfitError as error:
        raise SandboxRefusal(f"The video {error}.") from None
    facts = {"seconds": movie.sold_s, "width": picture.width, "height": picture.height}
    return json.dumps(facts).encode(), b"" if plain == data else plain


def check_video(wanted: str, _media_type: str, data: bytes) -> tuple[bytes, bytes]:
    """Return media type, sides and seconds of a video; raises `SandboxRefusal` without a track."""
    try:
        found = ".mp4" if data[4:8] == b"ftyp" else ".webm"
        movie = _FORMATS[found][0](data)
        picture = movie.picture()
        _check_promise(movie)
        check_length(picture.span_s, MOST_RESULT_SECONDS)
        _check_ordered(found, f".{wanted}")
    except UnfitError as error:
        raise SandboxRefusal(f"it {error}") from None
    facts = {"media_type": _TYPES[found], "seconds": picture.span_s}
    return json.dumps(facts | {"width": picture.width, "height": picture.height}).encode(), b""


def _check_sides(movie: Movie) -> Track:
    picture = movie.picture()
    if not all(LEAST_SIDE <= side <= MOST_SIDE for side in (picture.width, picture.height)):
        raise UnfitError(
            f"has {picture.width:,} by {picture.height:,} pixels; {LEAST_SIDE} to {MOST_SIDE:,} "
            "are allowed"
        )
    return picture


def _check_sound(movie: Movie) -> None:
    """Raise `UnfitError` for sound whose length only a decoder knows."""
    if any(track.packets_s is None for track in movie.of_kind("sound")):
        raise UnfitError("has a sound track that is not AAC or Opus")


def _check_ordered(found: str, wanted: str) -> None:
    if wanted in _FORMATS and wanted != found:
        raise UnfitError(f"is {_TYPES[found]}, and {_TYPES[wanted]} was ordered")


def _check_promise(movie: Movie) -> None:
    """Raise `UnfitError` if the header promises a longer video than there is."""
    if movie.promised_s > movie.shown_s + _TOLERANCE_S:
        raise UnfitError(f"{CUT_OFF} seconds")
