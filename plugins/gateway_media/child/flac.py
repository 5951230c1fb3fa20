"""FLAC: decoded to its end, and encoded again without loss."""

import io

from gateway_media.child.bounds import CUT_OFF, MOST_SECONDS, UnfitError, priced_seconds
from gateway_media.child.decoder import decode
from gateway_media.child.tags import skip_tags

# After the mark and the header of the first block; see RFC 9639, section 8.2.
_STREAM_INFO = b"fLaC", b"\0\0\x22"
_FORM = slice(18, 26)
_COUNT_BITS = 36


def read(data: bytes) -> tuple[float, bytes]:
    """Return the priced seconds of a FLAC, and the FLAC of the decoded samples."""
    data = data[skip_tags(data) :]
    mark, size = _STREAM_INFO
    if len(data) < _FORM.stop or data[:4] != mark or data[4] & 0x7F or data[5:8] != size:
        raise UnfitError("is no FLAC")
    form = int.from_bytes(data[_FORM])
    # With an unknown number of samples, the decoder reads all of them.
    unknown = (form >> _COUNT_BITS << _COUNT_BITS).to_bytes(8)
    file = io.BytesIO()
    decoded = decode(
        data[: _FORM.start] + unknown + data[_FORM.stop :],
        most_seconds=MOST_SECONDS,
        copy_to=file,
    )
    if decoded.frames < form & ((1 << _COUNT_BITS) - 1):
        raise UnfitError(CUT_OFF)
    return priced_seconds(decoded.frames, decoded.rate), file.getvalue()
