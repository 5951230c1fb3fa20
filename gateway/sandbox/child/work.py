"""A child's work: read the arguments, call the function, respond, and exit."""

import os
import socket
from collections.abc import Callable, Sequence

from gateway.sandbox.errors import SandboxRefusal
from gateway.sandbox.frames import ANSWER, BYTES, CALL, FAULT, HEAD, REFUSAL, TEXT, pack

EXIT_OUT_OF_MEMORY = 3
_PIECE_BYTES = 1 << 20

Function = Callable[..., bytes | Sequence[bytes]]


def serve(function: Function, descriptor: int) -> None:
    """Serve the call on a descriptor, then exit."""
    with socket.socket(fileno=descriptor) as conversation:
        try:
            for part in _call_function(function, conversation):
                conversation.sendall(part)
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
    return [_read_argument(conversation) for _ in range(count)]


def _read_argument(conversation: socket.socket) -> bytes | str:
    tag, size = HEAD.unpack(_read(conversation, HEAD.size))
    payload = _read(conversation, size)
    return payload.decode() if tag == TEXT else payload


def _read(conversation: socket.socket, size: int) -> bytes:
    pieces, missing = [], size
    while missing:
        piece = conversation.recv(min(missing, _PIECE_BYTES))
        if not piece:
            raise EOFError("the gateway hung up")
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)
