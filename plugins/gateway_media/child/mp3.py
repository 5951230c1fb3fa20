"""MP3: the frames alone, without tags and without the frame that describes the others."""

import struct

import attrs

from gateway_media.child.bounds import CUT_OFF, MOST_RESULT_SECONDS, UnfitError, check_length
from gateway_media.child.decoder import decode
from gateway_media.child.tags import skip_tags

# ISO 11172-3 and 13818-3, by the header's two bits of the version: 1, 2, and 2.5 of Fraunhofer.
_MPEG_1 = 3
_RATES = {
    _MPEG_1: (44_100, 48_000, 32_000),
    2: (22_050, 24_000, 16_000),
    0: (11_025, 12_000, 8_000),
}
_BITRATES_1 = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_BITRATES_2 = (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_LAYER_3 = 1
_SYNC = 0x7FF
_MONO = 3
_HEAD_BYTES = 4
# Tags behind the last frame.
_TAGS = (b"TAG", b"APETAGEX", b"LYRICSBEGIN", b"ID3", b"3DI")


@attrs.frozen
class _Frame:
    version: int
    rate: int
    is_mono: bool
    size: int

    @property
    def samples(self) -> int:
        return 1152 if self.version == _MPEG_1 else 576

    @property
    def form(self) -> tuple[int, int, bool]:
        """What all frames of a file share."""
        return self.version, self.rate, self.is_mono


def read(data: bytes) -> tuple[float, bytes]:
    """Return the seconds of an MP3 by its frames, and the MP3 of these frames."""
    at = skip_tags(data)
    first = _frame_at(data, at)
    if first is None:
        raise UnfitError("is no MP3")
    # Its number of frames may be wrong, so they are counted.
    if _described_frames(data[at : at + first.size], first) is not None:
        at += first.size
    end, count = _follow(data, at, first)
    if not count:
        raise UnfitError("has no samples")
    plain = data[at:end]
    seconds = count * first.samples / first.rate
    check_length(seconds)
    _check_decodes(plain)
    return seconds, plain


def measure(data: bytes) -> float:
    """Return the seconds of a provider's MP3 by its frames, also behind other data."""
    at = begin = skip_tags(data)
    seconds, count, promised = 0.0, 0, 0
    while at < len(data):
        frame = _frame_at(data, at)
        if frame is None or at + frame.size > len(data):
            at = data.find(b"\xff", at + 1) if at + 1 < len(data) else -1
            if at < 0:
                break
            continue
        described = None if count else _described_frames(data[at : at + frame.size], frame)
        if described is None:
            seconds, count = seconds + frame.samples / frame.rate, count + 1
        else:
            promised = described
        at += frame.size
    # Some writers count the frame with the description.
    if count + 1 < promised:
        raise UnfitError(CUT_OFF)
    _check_decodes(data[begin:])
    return seconds


def _check_decodes(data: bytes) -> None:
    # The decoder guesses the length of a file without a description, and stops there.
    if not decode(data, most_seconds=MOST_RESULT_SECONDS).frames:
        raise UnfitError("has no samples")


def _follow(data: bytes, at: int, first: _Frame) -> tuple[int, int]:
    """Return the end of the last frame, and the number of frames from `at` on."""
    count = 0
    while (frame := _frame_at(data, at)) is not None:
        if at + frame.size > len(data):
            # A recording that ends within a frame.
            return at, count
        if frame.form != first.form:
            raise UnfitError("changes its rate or channels")
        at, count = at + frame.size, count + 1
    rest = data[at:]
    if rest.strip(b"\0") and not rest.startswith(_TAGS):
        raise UnfitError("has other data between its frames, or is cut off")
    return at, count


def _frame_at(data: bytes, at: int) -> _Frame | None:
    """Return the frame whose header begins here, or None."""
    head = data[at : at + _HEAD_BYTES]
    if len(head) < _HEAD_BYTES or int.from_bytes(head) >> 21 != _SYNC:
        return None
    version, layer = head[1] >> 3 & 3, head[1] >> 1 & 3
    bitrate, rate = head[2] >> 4, head[2] >> 2 & 3
    if version not in _RATES or layer != _LAYER_3 or not 0 < bitrate < 0xF or rate > 2:  # noqa: PLR2004 - the last of three rates
        return None
    bitrates = _BITRATES_1 if version == _MPEG_1 else _BITRATES_2
    hertz = _RATES[version][rate]
    eighths = 144 if version == _MPEG_1 else 72
    size = eighths * bitrates[bitrate - 1] * 1000 // hertz + (head[2] >> 1 & 1)
    return _Frame(version, hertz, head[3] >> 6 == _MONO, size)


def _described_frames(frame: bytes, form: _Frame) -> int | None:
    """Return how many frames a first frame promises, 0 for an unknown number; None for sound."""
    side = (17, 32) if form.version == _MPEG_1 else (9, 17)
    at = _HEAD_BYTES + side[not form.is_mono]
    if frame[at : at + 4] in (b"Xing", b"Info") and len(frame) >= at + 12:
        flags, count = struct.unpack_from(">II", frame, at + 4)
        return count if flags & 1 else 0
    at = _HEAD_BYTES + 32
    if frame[at : at + 4] == b"VBRI" and len(frame) >= at + 18:
        return int(struct.unpack_from(">I", frame, at + 14)[0])
    return None
