"""Non-blocking standard output: a bounded queue, drained by a writer thread.

Without it, a pipe without a reader (a hung log driver, a stopped journal) would block the event
loop. Lines are dropped and counted while the queue is full.

`logging.handlers.QueueListener` is no alternative: it handles only `logging`, not structlog,
request lines or a plugin's `print`, and its `stop` would block for ever on such a pipe.
"""

import contextlib
import io
import itertools
import operator
import os
import queue
import select
import sys
import threading
from collections.abc import Iterator
from typing import Any, TextIO

from gateway.telemetry import signals

# Capacity of the queue: a few thousand lines.
_MAX_CHARS = 1_000_000
_CHARS_AT_ONCE = 65_536
# How long `close` waits for a slow or stopped reader.
_CLOSE_S = 3.0
_STANDARD_DESCRIPTORS = (0, 1, 2)


class LogQueue:
    """Writes text to file descriptors, in order, from its own thread."""

    def __init__(self, most_chars: int = _MAX_CHARS) -> None:
        self._most_chars = most_chars
        self._queue: queue.SimpleQueue[tuple[int, bytes, int]] = queue.SimpleQueue()
        # The garbage collector may log within `put`, in the same thread.
        self._lock = threading.RLock()
        self._waiting_chars = 0
        # Dropped lines that have not been reported yet.
        self._dropped = 0
        self._is_closing = False
        self._thread = threading.Thread(target=self._write_forever, name="log", daemon=True)
        self._thread.start()

    def put(self, descriptor: int, text: str, encoding: str = "utf-8") -> None:
        """Queue a text, or drop it if the queue is full."""
        size = len(text)
        with self._lock:
            # The writer's own line about dropped lines is always accepted.
            is_taken = self._waiting_chars < self._most_chars or (
                threading.current_thread() is self._thread
            )
            if is_taken:
                self._waiting_chars += size
        if is_taken:
            self._queue.put((descriptor, text.encode(encoding, "backslashreplace"), size))
        else:
            self._count_dropped(text.count("\n"))

    def close(self, timeout_s: float = _CLOSE_S) -> bool:
        """Flush the queue; returns whether that succeeded in time."""
        self._is_closing = True
        self._queue.put((-1, b"", 0))
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    # -- in the writer thread

    def _write_forever(self) -> None:
        while not (self._is_closing and self._queue.empty()):
            batch = self._take_batch()
            for descriptor, texts in itertools.groupby(batch, operator.itemgetter(0)):
                self._write(descriptor, b"".join(text for _, text, _ in texts))
            with self._lock:
                self._waiting_chars -= sum(size for _, _, size in batch)

    def _take_batch(self) -> list[tuple[int, bytes, int]]:
        """Wait for a text, and return it with those queued behind it."""
        batch = [self._queue.get()]
        size = batch[0][2]
        while size < _CHARS_AT_ONCE and not self._queue.empty():
            batch.append(self._queue.get())
            size += batch[-1][2]
        return batch

    def _write(self, descriptor: int, data: bytes) -> None:
        """Write all data; drop the rest if the disk is full or the pipe is closed."""
        while data:
            try:
                with contextlib.suppress(BlockingIOError):
                    data = data[os.write(descriptor, data) :]
                    continue
                # Another process that shares the pipe made it non-blocking.
                select.select((), (descriptor,), ())
            except (OSError, ValueError):
                self._count_dropped(data.count(b"\n"))
                return
        if descriptor >= 0:
            self._report_dropped()

    def _count_dropped(self, lines: int) -> None:
        with self._lock:
            self._dropped += lines
        signals.log_lines_dropped.send(lines=lines)

    def _report_dropped(self) -> None:
        """Log how many lines were dropped, now that writes succeed again."""
        with self._lock:
            lines, self._dropped = self._dropped, 0
        if lines:
            # Imported late: `serve` first hides modules that structlog would load.
            import structlog  # noqa: PLC0415

            _log = structlog.get_logger()
            _log.warning("log.dropped", lines=lines)


class _QueuedBytes(io.RawIOBase):
    """The `buffer` of a queued stream, for programs that print bytes."""

    def __init__(self, stream: "_QueuedStream") -> None:
        self._stream = stream

    def write(self, data: Any) -> int:
        """Decode and queue the bytes."""
        self._stream.write(bytes(data).decode(self._stream.encoding, "backslashreplace"))
        return len(data)

    def writable(self) -> bool:
        """Return True: this stream only writes."""
        return True


class _QueuedStream(io.TextIOBase):
    """A text stream whose writes never wait."""

    def __init__(self, log: LogQueue, descriptor: int, encoding: str) -> None:
        self._log = log
        self._descriptor = descriptor
        self._encoding = encoding
        self.buffer = _QueuedBytes(self)

    def write(self, text: str) -> int:
        """Queue the text."""
        if not isinstance(text, str):
            raise TypeError(f"write takes a text, not {type(text).__name__}")
        if text:
            self._log.put(self._descriptor, text, self._encoding)
        return len(text)

    # A plain attribute on Python's own streams, but their base class does not allow assignment.
    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the replaced stream."""
        return self._encoding

    def isatty(self) -> bool:
        """Whether the lines go to a terminal."""
        return os.isatty(self._descriptor)

    def fileno(self) -> int:
        """Return the file descriptor, for callers that need one."""
        return self._descriptor

    def writable(self) -> bool:
        """Return True: this stream only writes."""
        return True


@contextlib.contextmanager
def queued_output() -> Iterator[None]:
    """Make standard output and standard error non-blocking within the block.

    A stream that is not a file, such as a test's, stays as it is.
    """
    _fill_standard_descriptors()
    log = LogQueue()
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _queued(log, before[0], 1), _queued(log, before[1], 2)
    try:
        yield
    finally:
        # If the pipe has no reader, a later print to it would block the exit of the process.
        if log.close():
            sys.stdout, sys.stderr = before


def _queued(log: LogQueue, stream: TextIO | None, descriptor: int) -> Any:
    """Return a queued stream; `stream` is None if the descriptor was closed at startup."""
    if stream is None:
        return _QueuedStream(log, descriptor, "utf-8")
    try:
        return _QueuedStream(log, stream.fileno(), stream.encoding)
    except (OSError, ValueError):
        return stream


def _fill_standard_descriptors() -> None:
    """Open /dev/null for closed descriptors, or the next opened file would take their numbers."""
    while (opened := os.open(os.devnull, os.O_RDWR)) in _STANDARD_DESCRIPTORS:
        os.set_inheritable(opened, True)  # noqa: FBT003 - it takes no name
    os.close(opened)
