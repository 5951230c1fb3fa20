"""Sound in an M4A or a WebM: its container is read here, and PyAV decodes it."""

import io
from collections.abc import Callable

import av
import av.error

from gateway_media import samples
from gateway_media.child import boxes, ebml, mp4, webm
from gateway_media.child.bounds import (
    MOST_SECONDS,
    TOO_LONG,
    UnfitError,
    check_form,
    check_length,
    priced_seconds,
)
from gateway_media.child.movie import Movie

_Blank = Callable[[bytes, list[tuple[int, int, int]]], bytes]


def read_m4a(data: bytes) -> tuple[float, bytes]:
    """Return the priced seconds of an M4A, and the file without the rest."""
    return _read(data, mp4.read(data), boxes.blank, "mp4")


def read_webm(data: bytes) -> tuple[float, bytes]:
    """Return the priced seconds of a WebM, and the file without the rest."""
    return _read(data, webm.read(data), ebml.blank, "matroska")


def _read(data: bytes, movie: Movie, blank: _Blank, form: str) -> tuple[float, bytes]:
    movie.check_sold(videos=0, least_sounds=1)
    # Decoding takes longer than reading the tables.
    check_length(movie.longest_s)
    plain = blank(data, movie.unknown)
    movie.tracks[0].claims_s.append(_decoded_seconds(plain, form))
    return movie.sold_s, plain


def _decoded_seconds(data: bytes, form: str) -> float:
    """Return the seconds of all decoded samples; raises `UnfitError` without any."""
    seconds = 0.0
    try:
        with av.open(io.BytesIO(data), "r", form, metadata_errors="ignore") as container:
            stream = container.streams.audio[0]
            stream.codec_context.thread_count = 1
            for frame in container.decode(stream):
                check_form(frame.sample_rate, frame.layout.nb_channels)
                seconds += priced_seconds(frame.samples, frame.sample_rate)
                if seconds > MOST_SECONDS:
                    raise UnfitError(TOO_LONG.format(MOST_SECONDS))
    except (av.error.FFmpegError, ValueError, IndexError):
        raise UnfitError("cannot be decoded") from None
    if not seconds:
        raise UnfitError("has no samples")
    return seconds


def warm() -> None:
    """Load the decoders with all that they need, before the fork."""
    read_m4a(samples.M4A)
    read_webm(samples.WEBM_SOUND)
