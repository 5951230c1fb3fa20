"""The wire protocol of a sandboxed call."""

import struct

# A tag and the payload's size in bytes.
HEAD = struct.Struct("!cI")

# From the gateway to the child: CALL, with the number of arguments in place of a size, then one
# BYTES or TEXT frame per argument.
CALL = b"C"
BYTES = b"B"
TEXT = b"T"
# From the child to the gateway: one of these, or nothing if the child died. ANSWER has the number
# of parts in place of a size, and one frame per part follows. FAULT is an unexpected exception: its
# type and location.
ANSWER = b"A"
REFUSAL = b"R"
FAULT = b"F"
# From the warmed process to the gateway, as the last frame: an `errors.End` and, on the next line,
# the child's CPU time in seconds.
END = b"E"


def pack(tag: bytes, payload: bytes) -> bytes:
    """Return one frame."""
    return HEAD.pack(tag, len(payload)) + payload
