"""Measures buyers' videos, and checks providers' ones, by their containers and decoded sound."""

import json
from importlib.util import find_spec

from gateway.sandbox.errors import SandboxRefusal
from gateway_media.child import boxes, ebml, mp4, webm
from gateway_media.child.bounds import (
    CUT_OFF,
    LEAST_SIDE,
    MOST_RESULT_SECONDS,
    MOST_RESULT_SIDE,
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
# Their names in the player.
_FORMS = {".mp4": "mp4", ".webm": "matroska"}
# Of a video's sound.
_MOST_CHANNELS = 8
_HAS_PLAYER = find_spec("av") is not None
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
        picture = movie.picture()
        _check_sides(picture, LEAST_SIDE, MOST_SIDE)
        check_length(movie.sold_s)
        plain = blank(data, movie.unknown)
        check_size(plain, most_bytes)
        _decode(plain, extension, movie)
        check_length(movie.sold_s)
    except UnfitError as error:
        raise SandboxRefusal(f"The video {error}.") from None
    facts = {"seconds": movie.sold_s, "width": picture.width, "height": picture.height}
    return json.dumps(facts).encode(), b"" if plain == data else plain


def check_video(wanted: str, _media_type: str, data: bytes) -> tuple[bytes, bytes]:
    """Return media type, sides and seconds of a video; raises `SandboxRefusal` without a track."""
    try:
        found = ".mp4" if data[4:8] == b"ftyp" else ".webm"
        read, blank = _FORMATS[found]
        movie = read(data)
        picture = movie.picture()
        _check_promise(movie)
        check_length(picture.span_s, MOST_RESULT_SECONDS)
        _check_sides(picture, 1, MOST_RESULT_SIDE)
        _check_ordered(found, f".{wanted}")
        # A cover would be a picture, too.
        _check_picture(blank(data, movie.unknown), found, picture)
    except UnfitError as error:
        raise SandboxRefusal(f"it {error}") from None
    facts = {"media_type": _TYPES[found], "seconds": picture.span_s}
    return json.dumps(facts | {"width": picture.width, "height": picture.height}).encode(), b""


def _check_sides(picture: Track, least: int, most: int) -> None:
    if not all(least <= side <= most for side in (picture.width, picture.height)):
        raise UnfitError(
            f"has {picture.width:,} by {picture.height:,} pixels; {least} to {most:,} are allowed"
        )


def _check_sound(movie: Movie) -> None:
    """Raise `UnfitError` for sound whose length only a decoder knows, if there is none."""
    for track in movie.of_kind("sound"):
        if track.packets_s is None:
            raise UnfitError("has a sound track that is not AAC or Opus")
        if track.needs_decoder and not _HAS_PLAYER:
            raise UnfitError("has sound in AAC; this gateway takes none, or Opus")


def _decode(data: bytes, extension: str, movie: Movie) -> None:
    """Note the seconds of decoded sound; raises `UnfitError` if nothing can be decoded."""
    _check_picture(data, extension, movie.picture())
    for track in movie.of_kind("sound"):
        if track.needs_decoder:
            from gateway_media.child import player  # noqa: PLC0415

            form = _FORMS[extension]
            sound_s = player.sound_seconds(data, form, most_channels=_MOST_CHANNELS)
            track.claims_s.append(sound_s)


def _check_picture(data: bytes, extension: str, picture: Track) -> None:
    if _HAS_PLAYER:
        # The extra `m4a`, which is loaded before the fork.
        from gateway_media.child import player  # noqa: PLC0415

        player.check_picture(data, _FORMS[extension], picture.width * picture.height)


def _check_ordered(found: str, wanted: str) -> None:
    if wanted in _FORMATS and wanted != found:
        raise UnfitError(f"is {_TYPES[found]}, and {_TYPES[wanted]} was ordered")


def _check_promise(movie: Movie) -> None:
    """Raise `UnfitError` if the header promises a longer video than there is."""
    if movie.promised_s > movie.shown_s + _TOLERANCE_S:
        raise UnfitError(f"{CUT_OFF} seconds")
