"""Tags in front of a sound: ID3 (version 2) and APE."""

import struct

_ID3_BYTES = 10
_APE_BYTES = 32


def skip_tags(data: bytes) -> int:
    """Return the place behind the tags of a file."""
    at = 0
    while True:
        if data[at : at + 3] == b"ID3" and at + _ID3_BYTES <= len(data):
            a, b, c, d = data[at + 6 : at + _ID3_BYTES]
            has_footer = data[at + 5] & 0x10
            at += (a << 21 | b << 14 | c << 7 | d) + _ID3_BYTES * (2 if has_footer else 1)
        elif data[at : at + 8] == b"APETAGEX" and at + _APE_BYTES <= len(data):
            # With the footer, but without this header.
            at += int(struct.unpack_from("<I", data, at + 12)[0]) + _APE_BYTES
        else:
            break
    # Writers leave room after a tag.
    while data[at : at + 1] == b"\0":
        at += 1
    return at
