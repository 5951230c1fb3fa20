"""A child's work: read the arguments, call the function, respond, and exit.

The wire protocol is the same on both sides.
"""

import os
import socket
import struct
from collections.abc import Callable, Sequence

from gateway.sandbox.errors import SandboxRefusal

# A tag and the payload's size in bytes.
HEAD = struct.Struct("!cI")
# The warmed process's memory in bytes: without the pages of files, and all of it; and the seconds
# of CPU time that it took to load.
LOADED = struct.Struct("!QQd")

# From the gateway to the warmed process, with the descriptor of a conversation.
PAID, UNPAID = b"P", b"U"
# The same, to ask whether the function is loaded; the answer is an END.
LOAD = b"L"
# From the gateway to the child: CALL, with the number of arguments in place of a size, then one
# BYTES or TEXT frame per argument.
CALL = b"C"
BYTES = b"B"
TEXT = b"T"
# From the child to the gateway, before it reads the call: `LOADED`, with the descriptor of a file
# in /proc that shows the child's memory. A gateway may not open it, because the child is hidden
# from others. Only this frame is trusted: what comes after the call may be of an exploited child.
BEGIN = b"S"
# From the child to the gateway: one of these, or nothing if the child died. ANSWER has the number
# of parts in place of a size, and one frame per part follows. FAULT is an unexpected exception: its
# type and location.
ANSWER = b"A"
REFUSAL = b"R"
FAULT = b"F"
# From the warmed process to the gateway, as the last frame: an `errors.End` and, on the next line,
# the child's CPU time in seconds and the most memory that it had, with the warmed process's.
END = b"E"

EXIT_OUT_OF_MEMORY = 3
_PIECE_BYTES = 1 << 20
_JOINED_BYTES = 1 << 16

Function = Callable[..., bytes | Sequence[bytes]]


def pack(tag: bytes, payload: bytes) -> bytes:
    """Return one frame."""
    return HEAD.pack(tag, len(payload)) + payload


def serve(function: Function, descriptor: int) -> None:
    """Serve the call on a descriptor, then exit."""
    with socket.socket(fileno=descriptor) as conversation:
        try:
            frames = _call_function(function, conversation)
            if sum(map(len, frames)) <= _JOINED_BYTES:
                # The gateway wakes up once.
                frames = [b"".join(frames)]
            for frame in frames:
                conversation.sendall(frame)
        except MemoryError:
            os._exit(EXIT_OUT_OF_MEMORY)
    os._exit(0)


def _call_function(function: Function, conversation: socket.socket) -> Sequence[bytes]:
    """Return the frames to send, without copying large parts."""
    arguments = _read_call(conversation)
    try:
        result = function(*arguments)
    except MemoryError:
        raise
    except SandboxRefusal as error:
        return [pack(REFUSAL, str(error).encode(errors="replace"))]
    except BaseException as error:  # noqa: BLE001 - a panic in Rust is not an Exception
        return [pack(FAULT, _place_of(error).encode(errors="replace"))]
    parts = [result] if isinstance(result, bytes) else result
    answer = [HEAD.pack(ANSWER, len(parts))]
    for part in parts:
        answer += [HEAD.pack(BYTES, len(part)), part]
    return answer


def _place_of(error: BaseException) -> str:
    """Describe an error without its message, which may quote the input."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" in {trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno}" if trace else ""
    return f"{type(error).__name__}{where}"


def _read_call(conversation: socket.socket) -> list[bytes | str]:
    tag, count = HEAD.unpack(_read(conversation, HEAD.size))
    if tag != CALL:
        raise EOFError(f"expected a call, not {tag!r}")
    arguments: list[bytes | str] = []
    for _ in range(count):
        tag, size = HEAD.unpack(_read(conversation, HEAD.size))
        payload = _read(conversation, size)
        arguments.append(payload.decode() if tag == TEXT else payload)
    return arguments


def _read(conversation: socket.socket, size: int) -> bytes:
    pieces, missing = [], size
    while missing:
        piece = conversation.recv(min(missing, _PIECE_BYTES))
        if not piece:
            raise EOFError("the gateway hung up")
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)
