"""The gateway's side of the warmed process: start it, converse with its children, end it.

Megabytes are transferred in small pieces, so that the event loop never blocks.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs

from gateway.sandbox.child import work
from gateway.sandbox.errors import SandboxLost
from gateway.sandbox.limits import SandboxLimits

NOT_STARTED = "The sandboxed process could not be started."
_BOOT = str(Path(__file__).parent / "child" / "boot.py")
# The complete environment: an untrusted file must not be able to reach the gateway's secrets. One
# malloc arena per thread would count towards the memory limit, and threads do not survive a fork.
_ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
}
# Some builds of Python do not start without it.
_KEPT_VARIABLES = ("LD_LIBRARY_PATH",)
# Copying this much takes 0.1 ms.
_PIECE_BYTES = 1 << 18
_MAX_REFUSAL_BYTES = 1 << 16
_MAX_ANSWER_PARTS = 10_000
# Up to this size, joining (which holds the GIL) is faster than using a thread.
_JOIN_ON_LOOP_BYTES = 1 << 20


@attrs.define
class WarmedProcess:
    """A warmed process. It ends with this object, or when the gateway dies."""

    control: socket.socket
    process: "subprocess.Popen[bytes]"
    _finalizer: "weakref.finalize[..., WarmedProcess]" = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._finalizer = weakref.finalize(self, _end_process, self.control, self.process)

    @classmethod
    def start(cls, function: str, warm: tuple[str, ...], limits: SandboxLimits) -> "WarmedProcess":
        """Start the process with the gateway's import path, but not its environment.

        `function` and `warm` are as for `Sandbox`. Raises `SandboxLost` if the process cannot be
        started.
        """
        order = json.dumps(
            {
                "function": function,
                "warm": warm,
                "limits": attrs.asdict(limits),
                "path": [entry or str(Path.cwd()) for entry in sys.path],
            }
        )
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        ours, theirs = socket.socketpair()
        ours.settimeout(0)
        try:
            with theirs:
                # A new session, so that only the gateway receives Ctrl-C.
                process = subprocess.Popen(  # noqa: S603 - a constant command, no shell
                    [sys.executable, "-I", "-W", "ignore", _BOOT, order],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    env=_ENVIRONMENT | kept,
                    cwd="/",
                    start_new_session=True,
                )
        except OSError as error:
            ours.close()
            raise SandboxLost(NOT_STARTED) from error
        return cls(ours, process)

    @property
    def is_alive(self) -> bool:
        """Whether the process is running."""
        return self.process.poll() is None

    @contextmanager
    def conversation(self, *, is_paid: bool) -> Iterator[socket.socket]:
        """Open a conversation with a new child. Leaving the block kills the child."""
        ours, theirs = socket.socketpair()
        with ours:
            ours.settimeout(0)
            with theirs:
                socket.send_fds(
                    self.control, [work.PAID if is_paid else work.UNPAID], [theirs.fileno()]
                )
            yield ours

    def close(self) -> None:
        """End the process and its children."""
        self._finalizer()


def _end_process(control: socket.socket, process: "subprocess.Popen[bytes]") -> None:
    # Once `control` is closed, the process kills its children and exits. If it hangs, the kill ends
    # it, and its children with it.
    control.close()
    process.kill()
    process.wait()


async def send_call(conversation: socket.socket, arguments: Sequence[bytes | str]) -> None:
    """Send the arguments of a call. Returns early if the child has hung up."""
    loop = asyncio.get_running_loop()
    try:
        await loop.sock_sendall(conversation, work.HEAD.pack(work.CALL, len(arguments)))
        for argument in arguments:
            tag = work.TEXT if isinstance(argument, str) else work.BYTES
            payload = argument.encode() if isinstance(argument, str) else argument
            await loop.sock_sendall(conversation, work.HEAD.pack(tag, len(payload)))
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
    tag, size = work.HEAD.unpack(await _read(conversation, work.HEAD.size))
    if tag != work.ANSWER:
        _check_size(size, _MAX_REFUSAL_BYTES)
        return tag, (await _read(conversation, size),)
    _check_size(size, _MAX_ANSWER_PARTS)
    parts = []
    for _ in range(size):
        _, size = work.HEAD.unpack(await _read(conversation, work.HEAD.size))
        most_bytes -= size
        _check_size(0, most_bytes)
        parts.append(await _read(conversation, size))
    return tag, tuple(parts)


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise OverflowError("The answer is larger than the sandbox allows.")


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
