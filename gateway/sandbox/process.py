"""The gateway's side of the warmed process: start it, converse with its children, end it.

Megabytes are transferred in small pieces, so that the event loop never blocks.
"""

import asyncio
import contextlib
import json
import math
import os
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
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
# A process closes its descriptors this long before its end, at most.
_END_S = 1.0
# Of an END frame.
_MAX_END_BYTES = 128
_MAX_ANSWER_PARTS = 10_000
# Up to this size, joining (which holds the GIL) is faster than using a thread.
_JOIN_ON_LOOP_BYTES = 1 << 20


@attrs.define(eq=False, repr=False)
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
        try:
            ours, theirs = socket.socketpair()
            with contextlib.ExitStack() as failing, theirs:
                failing.callback(ours.close)
                ours.settimeout(0)
                process = _start_process(theirs, function, warm, limits)
                failing.pop_all()
        except OSError as error:
            raise SandboxLost(NOT_STARTED, has_begun=False) from error
        return cls(ours, process)

    @property
    def is_alive(self) -> bool:
        """Whether the process is running, and not being ended."""
        return self._finalizer.alive and self.process.poll() is None

    @contextmanager
    def conversation(self, message: bytes) -> Iterator[socket.socket]:
        """Open a conversation with a new child. Leaving the block kills the child.

        `message` is `work.PAID`, `work.UNPAID`, or `work.LOAD`, which starts no child. Raises
        `SandboxLost` if this process is short of descriptors.
        """
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            raise SandboxLost(NOT_STARTED, has_begun=False) from error
        with ours:
            ours.settimeout(0)
            with theirs:
                socket.send_fds(self.control, [message], [theirs.fileno()])
            yield ours

    async def close_if_ended(self) -> None:
        """Close the process if it has ended; wait shortly for that."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self.process.wait, _END_S)
            self.close()

    def close(self) -> None:
        """End the process and its children."""
        self._finalizer()


def _start_process(
    control: socket.socket, function: str, warm: tuple[str, ...], limits: SandboxLimits
) -> "subprocess.Popen[bytes]":
    """Start the warmed process with its end of the control socket; raises `OSError`."""
    order = json.dumps(
        {
            "function": function,
            "warm": warm,
            "limits": attrs.asdict(limits),
            "path": [entry or str(Path.cwd()) for entry in sys.path],
        }
    )
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    # A new session, so that only the gateway receives Ctrl-C.
    return subprocess.Popen(  # noqa: S603 - a constant command, no shell
        [sys.executable, "-I", "-W", "ignore", _BOOT, order],
        stdin=control.fileno(),
        stdout=subprocess.DEVNULL,
        env=_ENVIRONMENT | kept,
        cwd="/",
        start_new_session=True,
    )


def _end_process(control: socket.socket, process: "subprocess.Popen[bytes]") -> None:
    # Once `control` is closed, the process kills its children and exits. If it hangs, the kill ends
    # it, and its children with it.
    control.close()
    process.kill()
    try:
        # Freeing its memory may take longer than the event loop can wait.
        threading.Thread(target=process.wait, daemon=True).start()
    except RuntimeError:
        # No new thread could be started, such as when Python exits.
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


@attrs.frozen(eq=False, repr=False)
class Loaded:
    """Size and CPU time of a warmed process, from a child that has not read its input yet."""

    # The part of its memory that is in each child's peak, and all of it.
    shared_bytes: int
    warmed_bytes: int
    cpu_s: float


@attrs.frozen(eq=False, repr=False)
class Usage:
    """CPU time and memory of a child, with its warmed process's. An exploited child may lie."""

    cpu_s: float
    peak_bytes: int

    @classmethod
    def parse(cls, end: bytes) -> "Usage":
        """Parse the payload of an END frame; raises `ValueError`."""
        lines = end.split(b"\n")
        cpu_s, peak_bytes = lines[1].split() if len(lines) > 1 else [b"", b""]
        usage = cls(float(cpu_s), int(peak_bytes))
        if not 0 <= usage.cpu_s < math.inf:
            raise ValueError("no CPU time")
        return usage


# Of a child's warmed process, and a descriptor of the child's memory or None.
OnBegin = Callable[[Loaded, int | None], None]


async def read_answer(
    conversation: socket.socket,
    most_bytes: int,
    on_begin: OnBegin = lambda _loaded, _memory: None,
) -> tuple[bytes, tuple[bytes, ...]]:
    """Return the tag of the response and its parts; END if the child ended before them.

    `on_begin` gets the child's first report, from before it reads its input, and closes the
    descriptor. Raises `EOFError` if the other side closed without an end, `OverflowError` for more
    than `most_bytes`.
    """
    try:
        return await _read_frames(conversation, most_bytes, on_begin)
    except _EndOfStreamError as error:
        # The child ended in the middle of a frame.
        if end := _end_frame_in(error.rest):
            return work.END, (end,)
        raise


async def _read_frames(
    conversation: socket.socket, most_bytes: int, on_begin: OnBegin
) -> tuple[bytes, tuple[bytes, ...]]:
    with contextlib.ExitStack() as received:
        head, memory = await _read_first(conversation, received)
        tag, size = work.HEAD.unpack(head)
        if tag == work.BEGIN:
            # Only as the first frame: what comes later may be of an exploited child.
            loaded = Loaded(*work.LOADED.unpack(await _read(conversation, work.LOADED.size)))
            received.pop_all()
            on_begin(loaded, memory)
            tag, size = work.HEAD.unpack(await _read(conversation, work.HEAD.size))
    if tag != work.ANSWER:
        _check_size(size, _MAX_REFUSAL_BYTES)
        return tag, (await _read(conversation, size),)
    _check_size(size, _MAX_ANSWER_PARTS)
    parts = []
    for _ in range(size):
        tag_of_part, size = work.HEAD.unpack(await _read(conversation, work.HEAD.size))
        if tag_of_part != work.BYTES:
            # The child ended between two frames.
            _check_size(size, _MAX_REFUSAL_BYTES)
            return tag_of_part, (await _read(conversation, size),)
        most_bytes -= size
        _check_size(0, most_bytes)
        parts.append(await _read(conversation, size))
    return tag, tuple(parts)


class _EndOfStreamError(EOFError):
    """The conversation is closed. `rest` is what was read of the frame in progress."""

    def __init__(self, rest: bytes) -> None:
        super().__init__("the child's end of the conversation is closed")
        self.rest = rest


def _end_frame_in(rest: bytes) -> bytes | None:
    """Return the payload of an END frame at the end of the bytes, if there is one."""
    at = rest.rfind(work.END + bytes(2), -_MAX_END_BYTES)
    if at < 0 or len(rest) < at + work.HEAD.size:
        return None
    payload = rest[at + work.HEAD.size :]
    return payload if work.HEAD.unpack_from(rest, at)[1] == len(payload) else None


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise OverflowError("The answer is larger than the sandbox allows.")


async def _read_first(
    conversation: socket.socket, received: contextlib.ExitStack
) -> tuple[bytes, int | None]:
    """Return the first frame's head, and the descriptor that came with it, for `received`."""
    while True:
        with contextlib.suppress(BlockingIOError):
            head, descriptors, _, _ = socket.recv_fds(conversation, work.HEAD.size, 1)
            for one in descriptors:
                received.callback(os.close, one)
            if len(head) < work.HEAD.size:
                raise _EndOfStreamError(head)
            return head, next(iter(descriptors), None)
        await _wait_readable(conversation)


async def _wait_readable(conversation: socket.socket) -> None:
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    # With the number, asyncio formats no socket for an error.
    descriptor = conversation.fileno()
    loop.add_reader(descriptor, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(descriptor)


async def _read(conversation: socket.socket, size: int) -> bytes:
    loop = asyncio.get_running_loop()
    pieces: list[bytes] = []
    missing = size
    while missing:
        piece = await loop.sock_recv(conversation, min(missing, _PIECE_BYTES))
        if not piece:
            raise _EndOfStreamError(b"".join(pieces[-2:]))
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
