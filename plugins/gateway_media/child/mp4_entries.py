"""The form of a track of an MP4: the parts of its sample entry."""

from gateway_media.child.bounds import UnfitError
from gateway_media.child.boxes import Box, number, only

# The box of each form that describes its decoder.
_OWN = {
    b"avc1": b"avcC",
    b"avc3": b"avcC",
    b"hvc1": b"hvcC",
    b"hev1": b"hvcC",
    b"vp08": b"vpcC",
    b"vp09": b"vpcC",
    b"av01": b"av1C",
    b"mp4v": b"esds",
}
_SOUND_OWN = {b"mp4a": b"esds", b"Opus": b"dOps"}
# Colours, shapes, rates and speakers: numbers alone, without inner boxes.
_COMMON = (b"pasp", b"colr", b"btrt", b"fiel", b"clap", b"mdcv", b"clli", b"chan", b"chnl")
# The boxes begin after the fixed part.
_VIDEO_HEAD, _SOUND_HEAD = 78, 28
_WIDTH, _HEIGHT, _DEPTH = 24, 26, 74
# With these, some readers expect colours before the boxes.
_PALETTE_DEPTHS = (1, 2, 4, 8)
_SOUND_VERSION = 8
_MPEG_4 = 0x20


def known(entry: Box) -> tuple[bytes, ...]:
    """Return the names of boxes that a form may have, each once."""
    own = _OWN.get(entry.name) or _SOUND_OWN.get(entry.name)
    return (own, *_COMMON) if own else _COMMON


def head_bytes(data: bytes, entry: Box, kind: str) -> int:
    """Return the size of the fixed part; raises `UnfitError` for QuickTime's sounds."""
    if kind == "sound" and number(data, entry, _SOUND_VERSION, 2):
        raise UnfitError("has a sound track in an unknown form")
    head = _VIDEO_HEAD if kind == "video" else _SOUND_HEAD
    if entry.body + head > entry.end:
        raise UnfitError("has a box that is too short")
    return head


def sides(data: bytes, entry: Box) -> tuple[int, int]:
    """Return width and height of a video."""
    return number(data, entry, _WIDTH, 2), number(data, entry, _HEIGHT, 2)


def check_video(data: bytes, entry: Box, parts: list[Box]) -> Box:
    """Return the box that describes the decoder; raises `UnfitError` for an unknown form."""
    unknown = UnfitError("has a video track in an unknown form")
    if entry.name not in _OWN or number(data, entry, _DEPTH, 2) & 0x1F in _PALETTE_DEPTHS:
        raise unknown
    own = only(parts, _OWN[entry.name])
    if entry.name == b"mp4v" and decoder_config(data[own.body + 4 : own.end])[0] != _MPEG_4:
        raise unknown
    return own


def check_sound(entry: Box, parts: list[Box]) -> Box:
    """Return the box that describes the decoder; raises `UnfitError` for an unknown form."""
    if entry.name not in _SOUND_OWN:
        raise UnfitError("has a sound track that is not AAC or Opus")
    return only(parts, _SOUND_OWN[entry.name])


# -- Descriptors of ISO/IEC 14496-1

_ES, _DECODER_CONFIG, _DECODER_INFO = 3, 4, 5
_CONFIG_BYTES = 13
# Another stream, an address, or a clock; a priority may be in the other bits.
_OPTIONAL_PARTS = 0xE0
_UNKNOWN = "has a track with an unknown description"


def _descriptor(data: bytes, tag: int) -> bytes:
    """Return the content of the first descriptor, which has this tag."""
    size, at = 0, 1
    for at in range(1, 5):
        byte = data[at] if at < len(data) else 0
        size = size << 7 | byte & 0x7F
        if not byte & 0x80:
            break
    if data[:1] != bytes((tag,)) or at + 1 + size > len(data):
        raise UnfitError(_UNKNOWN)
    return data[at + 1 : at + 1 + size]


def decoder_config(esds: bytes) -> bytes:
    """Return what describes a decoder; its first byte is the format."""
    es = _descriptor(esds, _ES)
    if len(es) > 2 and es[2] & _OPTIONAL_PARTS:  # noqa: PLR2004 - flags of optional parts
        raise UnfitError(_UNKNOWN)
    config = _descriptor(es[3:], _DECODER_CONFIG)
    if len(config) < _CONFIG_BYTES:
        raise UnfitError(_UNKNOWN)
    return config


def decoder_info(config: bytes) -> bytes:
    """Return a format's own description."""
    return _descriptor(config[_CONFIG_BYTES:], _DECODER_INFO)
