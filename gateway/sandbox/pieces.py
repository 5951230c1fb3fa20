"""Megabytes over a socket, in pieces so small that the event loop is never held up."""

import asyncio
import socket
from collections.abc import Sequence

from gateway.sandbox import frames

_PIECE_BYTES = 1 << 18  # what a socket takes or gives at once; 0.1 ms of copying
_MOST_WORDS_BYTES = 1 << 16  # of a refusal
_MOST_PARTS = 1000  # of an answer
_JOIN_ON_LOOP_BYTES = 1 << 20  # up to here a join is faster than a thread, and joins keep the GIL


async def send_call(conversation: socket.socket, arguments: Sequence[bytes | str]) -> None:
    """Send what a function is called with; returns early where the child hung up."""
    loop = asyncio.get_running_loop()
    try:
        await loop.sock_sendall(conversation, frames.HEAD.pack(frames.CALL, len(arguments)))
        for argument in arguments:
            tag = frames.TEXT if isinstance(argument, str) else frames.BYTES
            payload = argument.encode() if isinstance(argument, str) else argument
            await loop.sock_sendall(conversation, frames.HEAD.pack(tag, len(payload)))
            await loop.sock_sendall(conversation, memoryview(payload))
    except (BrokenPipeError, ConnectionResetError):
        return  # it ended early; how, it or the warmed process has already written


async def read_answer(
    conversation: socket.socket, most_bytes: int
) -> tuple[bytes, tuple[bytes, ...]]:
    """Return the tag of what the far end says, and its parts.

    Raises `EOFError` where it closed before, `OverflowError` for more than `most_bytes`.
    """
    tag, size = await _read_head(conversation)
    if tag != frames.ANSWER:
        _check(size, _MOST_WORDS_BYTES)
        return tag, (await _read(conversation, size),)
    _check(size, _MOST_PARTS)
    parts = []
    for _ in range(size):
        _, size = await _read_head(conversation)
        most_bytes -= size
        _check(0, most_bytes)
        parts.append(await _read(conversation, size))
    return tag, tuple(parts)


def _check(size: int, most: int) -> None:
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
            await asyncio.sleep(0)  # `sock_recv` itself gives way only where nothing has come yet
    if size <= _JOIN_ON_LOOP_BYTES:
        return b"".join(pieces)
    return await asyncio.to_thread(_joined, pieces)


def _joined(pieces: list[bytes]) -> bytes:
    """Return one string of all pieces, and let go of them here: freeing takes time, too."""
    whole = b"".join(pieces)
    while pieces:
        pieces.pop()
    return whole
