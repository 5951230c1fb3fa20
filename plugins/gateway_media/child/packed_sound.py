"""Sound in an M4A or a WebM: its container is read here, and PyAV decodes it."""

from collections.abc import Callable

from gateway_media import samples
from gateway_media.child import boxes, ebml, mp4, player, webm
from gateway_media.child.bounds import check_length
from gateway_media.child.movie import Movie

_Blank = Callable[[bytes, list[tuple[int, int, int]]], bytes]


def read_m4a(data: bytes) -> tuple[float, bytes]:
    """Return the priced seconds of an M4A, and the file without the rest."""
    return _read(data, mp4.read(data), boxes.blank, player.MP4)


def read_webm(data: bytes) -> tuple[float, bytes]:
    """Return the priced seconds of a WebM, and the file without the rest."""
    return _read(data, webm.read(data), ebml.blank, player.WEBM)


def _read(data: bytes, movie: Movie, blank: _Blank, form: str) -> tuple[float, bytes]:
    movie.check_sold(videos=0, least_sounds=1)
    # Decoding takes longer than reading the tables.
    check_length(movie.longest_s)
    plain = blank(data, movie.unknown)
    movie.tracks[0].claims_s.append(player.sound_seconds(plain, form))
    return movie.sold_s, plain


def warm() -> None:
    """Load the decoders with all that they need, before the fork."""
    read_m4a(samples.M4A)
    read_webm(samples.WEBM_SOUND)
