"""Pictures in one sample of H.264 and H.265: by the first slices of its NAL units."""

from collections.abc import Iterator

# The byte of the description whose last two bits are the size of a length, less one.
_AVC_SIZE_AT, _HEVC_SIZE_AT = 4, 21
_FIRST_BIT = 0x80
# H.264: slices of a picture, and its key frames.
_AVC_SLICES = (1, 5)
# H.265: types below are slices.
_HEVC_OTHERS = 32
_AVC_HEAD_BYTES, _HEVC_HEAD_BYTES = 1, 2


def shown_avc(sample: bytes, config: bytes) -> int:
    """Return the pictures that begin in a sample of H.264; two fields are one."""
    firsts = 0
    for unit in _units(sample, config, _AVC_SIZE_AT):
        is_slice = len(unit) > _AVC_HEAD_BYTES and unit[0] & 0x1F in _AVC_SLICES
        # The number of its first block: a single bit is zero.
        firsts += is_slice and bool(unit[_AVC_HEAD_BYTES] & _FIRST_BIT)
    return (firsts + 1) // 2


def shown_hevc(sample: bytes, config: bytes) -> int:
    """Return the pictures of the first layer that begin in a sample of H.265."""
    firsts = 0
    for unit in _units(sample, config, _HEVC_SIZE_AT):
        is_slice = len(unit) > _HEVC_HEAD_BYTES and unit[0] >> 1 & 0x3F < _HEVC_OTHERS
        layer = (unit[0] & 1) << 5 | unit[1] >> 3 if is_slice else 0
        firsts += is_slice and not layer and bool(unit[_HEVC_HEAD_BYTES] & _FIRST_BIT)
    return firsts


def _units(sample: bytes, config: bytes, size_at: int) -> Iterator[bytes]:
    """Yield the begin of each NAL unit, up to one that is cut off."""
    size = (config[size_at] & 3) + 1 if len(config) > size_at else 4
    at = 0
    while at + size <= len(sample):
        length = int.from_bytes(sample[at : at + size])
        at += size
        if at + length > len(sample):
            return
        yield sample[at : at + min(length, _HEVC_HEAD_BYTES + 1)]
        at += length
