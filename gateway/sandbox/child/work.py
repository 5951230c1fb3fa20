"""What a child does: hears its arguments, calls the function, answers, and ends."""

import os
import socket
from collections.abc import Callable, Sequence

from gateway.sandbox.errors import SandboxRefusal
from gateway.sandbox.frames import ANSWER, BYTES, CALL, FAULT, HEAD, REFUSAL, TEXT, pack

EXIT_OUT_OF_MEMORY = 3
_PIECE_BYTES = 1 << 20

Function = Callable[..., bytes | Sequence[bytes]]


def serve(function: Function, descriptor: int) -> None:
    """Answer the conversation behind a descriptor and end this process."""
    with socket.socket(fileno=descriptor) as conversation:
        try:
            for part in _outcome(function, conversation):
                conversation.sendall(part)
        except MemoryError:
            os._exit(EXIT_OUT_OF_MEMORY)
    os._exit(0)


def _outcome(function: Function, conversation: socket.socket) -> Sequence[bytes]:
    """Return what to send, without copying what may be large."""
    arguments = _read_call(conversation)
    try:
        found = function(*arguments)
    except MemoryError:
        raise
    except SandboxRefusal as error:
        return [pack(REFUSAL, str(error).encode(errors="replace"))]
    except BaseException as error:  # noqa: BLE001 - a panic in Rust is no Exception
        return [pack(FAULT, _place(error).encode(errors="replace"))]
    parts = [found] if isinstance(found, bytes) else found
    told = [HEAD.pack(ANSWER, len(parts))]
    for part in parts:
        told += [HEAD.pack(BYTES, len(part)), part]
    return told


def _place(error: BaseException) -> str:
    """Return an error's kind and place, not its message: that may quote the input."""
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
