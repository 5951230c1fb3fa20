"""The frames in which a call, its answer and its child's end travel over one socket."""

import struct

# A tag and the number of bytes of the payload.
HEAD = struct.Struct("!cI")

# From the gateway to the child: a CALL frame holds the number of arguments in place of a size; one
# BYTES or TEXT frame for each argument follows.
CALL = b"C"
BYTES = b"B"
TEXT = b"T"
# From the child to the gateway: one of these three, or nothing if the child died. An ANSWER frame
# holds the number of parts in place of a size; one frame for each part follows. A FAULT is an
# exception that the function should not raise: its kind and place.
ANSWER = b"A"
REFUSAL = b"R"
FAULT = b"F"
# From the warmed process to the gateway: the last frame. It has an `errors.End` and, on the next
# line, the processor time of the child in seconds.
END = b"E"


def pack(tag: bytes, payload: bytes) -> bytes:
    """Return one frame."""
    return HEAD.pack(tag, len(payload)) + payload
