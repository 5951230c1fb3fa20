"""Pictures in one sample: it may have several, but shows one."""

from gateway_media.child.bounds import UnfitError
from gateway_media.child.nal_units import shown_avc, shown_hevc

# Sections 5.3 and 6.2 of the specification of AV1: types of OBUs.
_SEQUENCE, _DELIMITER, _FRAME_HEADER, _FRAME = 1, 2, 3, 6
_KNOWN = (_SEQUENCE, _DELIMITER, _FRAME_HEADER, 4, 5, _FRAME, 7, 15)
_CONFIG_BYTES = 4
_MOST_SIZE_BYTES = 8
# VP9: the mark of an index of several frames.
_INDEX = 0b110
_FRAME_MARK = 0b10
_MPEG_4_PICTURE = b"\0\0\1\xb6"
_MALFORMED = "has a malformed picture"


def check_single(form: bytes, sample: bytes, config: bytes = b"") -> None:
    """Raise `UnfitError` for a sample that shows several pictures.

    The form of a track of an MP4 or a WebM; `config` describes the decoder.
    """
    count = _COUNTERS.get(form)
    if count is not None and count(sample, config) > 1:
        raise UnfitError("has several pictures in a sample")


def check_config(form: bytes, config: bytes) -> None:
    """Raise `UnfitError` for a description with pictures, or of pictures in an unknown form."""
    if _COUNTERS.get(form) is _shown_av1 and _shown_av1(config[_CONFIG_BYTES:], b""):
        raise UnfitError(_MALFORMED)


def _shown_av1(sample: bytes, _config: bytes) -> int:
    at, shown, delimiters = 0, 0, 0
    while at < len(sample):
        head = sample[at]
        kind, has_more, has_size = head >> 3 & 0xF, head & 4, head & 2
        at += 2 if has_more else 1
        end = len(sample)
        if has_size:
            size, at = _leb128(sample, at)
            end = at + size
        if head & 0x80 or kind not in _KNOWN or end > len(sample) or at > end:
            raise UnfitError(_MALFORMED)
        first = sample[at] if at < end else 0
        delimiters += kind == _DELIMITER
        # A still picture's header, after which a frame has another form.
        if kind == _SEQUENCE and first & 0x08:
            raise UnfitError("has a video track in an unknown form")
        if kind in (_FRAME_HEADER, _FRAME):
            # Either it shows an earlier frame, or it is shown itself.
            shown += bool(first & 0x90)
        at = end
    return max(shown, delimiters)


def _leb128(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index in range(_MOST_SIZE_BYTES):
        if at >= len(data):
            break
        value |= (data[at] & 0x7F) << 7 * index
        at += 1
        if not data[at - 1] & 0x80:
            return value, at
    raise UnfitError(_MALFORMED)


def _shown_vp9(sample: bytes, _config: bytes) -> int:
    return sum(map(_is_shown_vp9, _vp9(sample)))


def _shown_mpeg4(sample: bytes, _config: bytes) -> int:
    # Some writers put a picture and the one before it into a packet, and then leave one empty.
    return (sample.count(_MPEG_4_PICTURE) + 1) // 2


def _vp9(sample: bytes) -> list[bytes]:
    """Return the frames of a sample, by the index at its end."""
    mark = sample[-1] if sample else 0
    count, size = (mark & 7) + 1, (mark >> 3 & 3) + 1
    begin = len(sample) - 2 - count * size
    if mark >> 5 != _INDEX or begin < 0 or sample[begin] != mark:
        return [sample]
    frames, at = [], 0
    for place in range(begin + 1, len(sample) - 1, size):
        length = int.from_bytes(sample[place : place + size], "little")
        frames.append(sample[at : at + length])
        at += length
        if not length or at > begin:
            raise UnfitError(_MALFORMED)
    return frames


def _is_shown_vp9(frame: bytes) -> bool:
    bits = int.from_bytes(frame[:2].ljust(2, b"\0"))
    if bits >> 14 != _FRAME_MARK:
        raise UnfitError(_MALFORMED)
    # The fourth profile has one more bit.
    at = 10 if bits >> 12 & 3 == 3 else 11  # noqa: PLR2004 - both bits of the profile
    is_earlier, is_shown = bits >> at & 1, bits >> (at - 2) & 1
    return bool(is_earlier or is_shown)


_COUNTERS = {
    b"av01": _shown_av1,
    b"V_AV1": _shown_av1,
    b"vp09": _shown_vp9,
    b"V_VP9": _shown_vp9,
    b"avc1": shown_avc,
    b"avc3": shown_avc,
    b"hvc1": shown_hevc,
    b"hev1": shown_hevc,
    b"mp4v": _shown_mpeg4,
}
