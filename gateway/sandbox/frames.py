"""The frames in which a call, its answer and its child's end travel over one socket."""

import struct

HEAD = struct.Struct("!cI")  # tag, bytes of payload

# From the gateway to the child: the number of arguments in place of a size, then each of them.
CALL = b"C"
BYTES = b"B"
TEXT = b"T"
# From the child to the gateway: one of them, or none where it died.
ANSWER = b"A"  # the number of parts in place of a size, then each of them
REFUSAL = b"R"
FAULT = b"F"  # an exception that nobody expected: its kind and place
# From the warmed process to the gateway, last.
END = b"E"


def pack(tag: bytes, payload: bytes) -> bytes:
    """Return one frame."""
    return HEAD.pack(tag, len(payload)) + payload
