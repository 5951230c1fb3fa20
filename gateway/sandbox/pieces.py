"""Transfers megabytes over a socket in small pieces, so that the event loop never blocks."""

import asyncio
import socket
from collections.abc import Sequence

from gateway.sandbox import frames

# Copying this much takes 0.1 ms.
_PIECE_BYTES = 1 << 18
_MAX_REFUSAL_BYTES = 1 << 16
_MAX_ANSWER_PARTS = 10_000
# Up to this size, joining (which holds the GIL) is faster than using a thread.
_JOIN_ON_LOOP_BYTES = 1 << 20


async def send_call(conversation: socket.socket, arguments: Sequence[bytes | str]) -> None:
    """Send the arguments of a call. Returns early if the child has hung up."""
    loop = asyncio.get_running_loop()
    try:
        await loop.sock_sendall(conversation, frames.HEAD.pack(frames.CALL, len(arguments)))
        for argument in arguments:
            tag = frames.TEXT if isinstance(argument, str) else frames.BYTES
            payload = argument.encode() if isinstance(argument, str) else argument
            await loop.sock_sendall(conversation, frames.HEAD.pack(tag, len(payload)))
            await loop.sock_sendall(conversation, memoryview(payload))
    except (BrokenPipeError, ConnectionResetError):
        # The child ended early. It or the warmed process has already sent the reason.
        return


async def read_answer(
    conversation: socket.socket, most_bytes: int
) -> tuple[bytes, tuple[bytes, ...]]:
    """Return the tag of the response and its parts.

    Raises `EOFError` if the other side closed early, `OverflowError` for more than `most_bytes`.
    """
    tag, size = await _read_head(conversation)
    if tag != frames.ANSWER:
        _check_size(size, _MAX_REFUSAL_BYTES)
        return tag, (await _read(conversation, size),)
    _check_size(size, _MAX_ANSWER_PARTS)
    parts = []
    for _ in range(size):
        _, size = await _read_head(conversation)
        most_bytes -= size
        _check_size(0, most_bytes)
        parts.append(await _read(conversation, size))
    return tag, tuple(parts)


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise OverflowError("The answer is larger than the sandbox allows.")


async def _read_head(conversation: socket.socket) -> tuple[bytes, int]:
    tag, size = frames.HEAD.unpack(await _read(conversation, frames.HEAD.size))
    return tag, size


async def _read(conversation: socket.socket, size: int) -> bytes:
    loop = asyncio.get_running_loop()
    pieces, missing = [], size
    while missing:
        piece = await loop.sock_recv(conversation, min(missing, _PIECE_BYTES))
        if not piece:
            raise EOFError("the child's end of the conversation is closed")
        pieces.append(piece)
        missing -= len(piece)
        if missing:
            # `sock_recv` yields to the event loop only if no data has arrived yet.
            await asyncio.sleep(0)
    if size <= _JOIN_ON_LOOP_BYTES:
        return b"".join(pieces)
    return await asyncio.to_thread(_join, pieces)


def _join(pieces: list[bytes]) -> bytes:
    """Join and free the pieces in this thread, because freeing takes time, too."""
    whole = b"".join(pieces)
    while pieces:
        pieces.pop()
    return whole
