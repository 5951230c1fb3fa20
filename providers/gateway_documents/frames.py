"""The frames in which a document, its answer and its child's end travel over one socket."""

import enum
import struct

HEAD = struct.Struct("!cI")  # tag, bytes of payload
MAX_ANSWER_BYTES = 16_000_000  # of Markdown; ten thousand pages

# From the gateway to the child, in this order.
KIND = b"K"
DOCUMENT = b"D"
# From the child to the gateway: one of them, or none where it died.
MARKDOWN = b"M"
REFUSAL = b"R"
# From the nursery to the gateway, last.
END = b"E"


class End(enum.StrEnum):
    """How a child ended."""

    DONE = "done"
    OUT_OF_TIME = "out of time"
    OUT_OF_MEMORY = "out of memory"
    CRASHED = "crashed"  # a parser written in C or Rust: too little memory, or a fault of its own
    LOST = "lost"  # killed by somebody else, such as the kernel for want of memory


def pack(tag: bytes, payload: bytes) -> bytes:
    """Return one frame."""
    return HEAD.pack(tag, len(payload)) + payload
