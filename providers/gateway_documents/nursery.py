"""The gateway's side of the nursery: starts it, hands it documents, hears what became of them."""

import asyncio
import socket
import subprocess
import sys
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs

from gateway_documents import frames
from gateway_documents.errors import ParserLost, Unreadable
from gateway_documents.frames import End

MAX_CHILDREN = 2  # at once: two hostile ones may take 1 GB each; the others wait their turn
ANSWER_S = 50.0  # start of the nursery and the whole of one document; the nursery kills earlier

# The package is announced, not imported: its __init__ would bring the gateway and 15 MB along.
_BOOT = """
import sys, types
sys.path[:] = sys.argv[2:]
package = sys.modules["gateway_documents"] = types.ModuleType("gateway_documents")
package.__path__ = [sys.argv[1]]
from gateway_documents.child.keeper import main
main()
"""
_ENVIRONMENT = {  # all of it: a document must not be able to read the gateway's secrets
    "LANG": "C.UTF-8",
    "MALLOC_ARENA_MAX": "1",  # an arena for each thread would count against the memory limit
    "OPENBLAS_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
}
_NOT_STARTED = "The document parser could not be started."
_SENTENCES = {
    End.OUT_OF_TIME: "The file takes too much time to parse.",
    End.OUT_OF_MEMORY: "The file takes too much memory to parse.",
    End.CRASHED: "The file cannot be parsed: it is damaged, or takes too much memory.",
}


@attrs.define
class _Running:
    """A nursery process; ends with this object, and when the gateway dies."""

    control: socket.socket
    process: "subprocess.Popen[bytes]"
    _end: "weakref.finalize[..., _Running]" = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._end = weakref.finalize(self, _end, self.control, self.process)

    @classmethod
    def start(cls) -> "_Running":
        """Start the process: with our import path, and nothing else of ours."""
        python = [sys.executable, "-I", "-W", "ignore", "-c", _BOOT]
        ours, theirs = socket.socketpair()
        ours.settimeout(0)
        try:
            with theirs:
                process = subprocess.Popen(  # noqa: S603 - a constant command, no shell
                    [*python, str(Path(__file__).parent), *filter(None, sys.path)],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    env=_ENVIRONMENT,
                    cwd="/",
                    start_new_session=True,  # Ctrl-C is the gateway's to handle
                )
        except OSError as error:
            ours.close()
            raise ParserLost(_NOT_STARTED) from error
        return cls(ours, process)

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def adopt(self, conversation: socket.socket) -> None:
        """Hand over the far end of a conversation: the nursery forks a child for it."""
        socket.send_fds(self.control, [b"\0"], [conversation.fileno()])

    def close(self) -> None:
        self._end()


def _end(control: socket.socket, process: "subprocess.Popen[bytes]") -> None:
    control.close()  # the nursery kills its children and leaves
    process.kill()  # in case it does not; its children hear of that, too
    process.wait()


@attrs.define
class Nursery:
    """Keeps one process with the parsers loaded, and has a child of it parse each document.

    It starts with the first document and leaves by itself when none came for five minutes.
    """

    _running: _Running | None = None
    _starting: asyncio.Lock = attrs.field(factory=asyncio.Lock)
    _turns: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(MAX_CHILDREN))

    async def start(self) -> _Running:
        """Return the running process, started if need be."""
        async with self._starting:
            if self._running is None or not self._running.is_alive:
                self.close()
                self._running = await asyncio.to_thread(_Running.start)
            return self._running

    def close(self) -> None:
        """End the process with all its children."""
        if self._running is not None:
            self._running.close()
            self._running = None

    async def parse(self, kind: str, data: bytes) -> str:
        """Return the Markdown of a file whose kind `kinds.recognise` told.

        Raises `Unreadable` where the file is to blame, else `ParserLost`.
        """
        async with self._turns:
            try:
                return await self._ask(kind, data)
            except ConnectionError:
                # It left for want of work just now, or was killed; parsing has no effects.
                return await self._ask_again(kind, data)

    async def _ask_again(self, kind: str, data: bytes) -> str:
        try:
            return await self._ask(kind, data)
        except ConnectionError as error:
            raise ParserLost(_NOT_STARTED) from error

    async def _ask(self, kind: str, data: bytes) -> str:
        """Ask once; raises `ConnectionError` where the nursery is gone."""
        running = await self.start()
        try:
            async with asyncio.timeout(ANSWER_S), _conversation(running) as (reader, writer):
                writer.write(frames.pack(frames.KIND, kind.encode()))
                writer.write(frames.pack(frames.DOCUMENT, data))
                return await _read_answer(reader)
        except TimeoutError as error:
            running.close()
            raise ParserLost("The document parser does not answer.") from error
        except (OSError, asyncio.IncompleteReadError) as error:
            running.close()
            raise ConnectionError("The nursery is gone.") from error


@asynccontextmanager
async def _conversation(
    running: _Running,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Open a conversation with a new child; leaving, however it happens, kills the child."""
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            running.adopt(theirs)
        reader, writer = await asyncio.open_unix_connection(sock=ours)
    except BaseException:
        ours.close()
        raise
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def _read_answer(reader: asyncio.StreamReader) -> str:
    """Wait for the child's answer, or for news of its end, and return the Markdown."""
    tag, size = frames.HEAD.unpack(await reader.readexactly(frames.HEAD.size))
    if size > frames.MAX_ANSWER_BYTES:
        raise ParserLost("The document parser answered with nonsense.")
    payload = (await reader.readexactly(size)).decode()
    if tag == frames.MARKDOWN:
        return payload
    if tag == frames.REFUSAL:
        raise Unreadable(payload)
    if payload in _SENTENCES:
        raise Unreadable(_SENTENCES[End(payload)])
    raise ParserLost("The document parser was killed from outside.")
