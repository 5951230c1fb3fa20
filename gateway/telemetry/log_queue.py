"""Standard output without waiting: lines go through a bounded queue to a thread that writes them.

A pipe without a reader (a log driver that hangs, a stopped journal) would hold the event loop at
its next line. Lines that find the queue full are dropped and counted.

`logging.handlers.QueueListener` has the lines of `logging` alone, and its `stop` waits for ever for
such a pipe. structlog, the lines of requests and a plugin's `print` write to the stream itself.
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

# The most characters in the queue: some thousand lines.
_MOST_CHARS = 1_000_000
_CHARS_AT_ONCE = 65_536
# At the end, for a reader that is slow or has stopped.
_CLOSE_S = 3.0
_STANDARD_DESCRIPTORS = (0, 1, 2)


class LogQueue:
    """Writes texts to file descriptors, in their order, in a thread of its own."""

    def __init__(self, most_chars: int = _MOST_CHARS) -> None:
        self._most_chars = most_chars
        self._queue: queue.SimpleQueue[tuple[int, bytes, int]] = queue.SimpleQueue()
        # The garbage collector may log within `put`, in the same thread.
        self._lock = threading.RLock()
        self._waiting_chars = 0
        # Lines that were lost and not reported yet.
        self._dropped = 0
        self._is_closing = False
        self._thread = threading.Thread(target=self._write_forever, name="log", daemon=True)
        self._thread.start()

    def put(self, descriptor: int, text: str, encoding: str = "utf-8") -> None:
        """Have a text written; drop it if too much waits already."""
        size = len(text)
        with self._lock:
            # The line about dropped lines always has room.
            is_taken = self._waiting_chars < self._most_chars or (
                threading.current_thread() is self._thread
            )
            if is_taken:
                self._waiting_chars += size
        if is_taken:
            self._queue.put((descriptor, text.encode(encoding, "backslashreplace"), size))
        else:
            self._count_dropped(text.count("\n"))

    def close(self, patience_s: float = _CLOSE_S) -> bool:
        """Write what waits; returns whether that succeeded in time."""
        self._is_closing = True
        self._queue.put((-1, b"", 0))
        self._thread.join(patience_s)
        return not self._thread.is_alive()

    # -- in the thread

    def _write_forever(self) -> None:
        while not (self._is_closing and self._queue.empty()):
            batch = self._take_batch()
            for descriptor, texts in itertools.groupby(batch, operator.itemgetter(0)):
                self._write(descriptor, b"".join(text for _, text, _ in texts))
            with self._lock:
                self._waiting_chars -= sum(size for _, _, size in batch)

    def _take_batch(self) -> list[tuple[int, bytes, int]]:
        """Wait for a text, and return it with those behind it."""
        batch = [self._queue.get()]
        size = batch[0][2]
        while size < _CHARS_AT_ONCE and not self._queue.empty():
            batch.append(self._queue.get())
            size += batch[-1][2]
        return batch

    def _write(self, descriptor: int, data: bytes) -> None:
        """Write all of it; drop the rest if the disk is full or the pipe closed."""
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
        """Log how many lines are missing, now that the log takes lines again."""
        with self._lock:
            lines, self._dropped = self._dropped, 0
        if lines:
            # Not before the command `serve` has hidden what structlog would load.
            import structlog  # noqa: PLC0415

            _log = structlog.get_logger()
            _log.warning("log.dropped", lines=lines)


class _QueuedBytes(io.RawIOBase):
    """The `buffer` of a queued stream, for programs that print bytes."""

    def __init__(self, stream: "_QueuedStream") -> None:
        self._stream = stream

    def write(self, data: Any) -> int:
        """Queue the bytes, read as text."""
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

    # Python's own streams have a plain attribute here, but their base class cannot be assigned to.
    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the stream that this one stands for."""
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
    """Let standard output and standard error wait for no reader within the block.

    A stream that is no file, such as a test's, stays as it is.
    """
    _fill_standard_descriptors()
    log = LogQueue()
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _queued(log, before[0], 1), _queued(log, before[1], 2)
    try:
        yield
    finally:
        # Where nobody reads, whatever is printed from here on would hold the end of the process.
        if log.close():
            sys.stdout, sys.stderr = before


def _queued(log: LogQueue, stream: TextIO | None, descriptor: int) -> Any:
    """Return a stream that queues; Python has none for a descriptor that was closed."""
    if stream is None:
        return _QueuedStream(log, descriptor, "utf-8")
    try:
        return _QueuedStream(log, stream.fileno(), stream.encoding)
    except (OSError, ValueError):
        return stream


def _fill_standard_descriptors() -> None:
    """Open /dev/null for closed ones: the next file, such as the lock, would take their numbers."""
    while (opened := os.open(os.devnull, os.O_RDWR)) in _STANDARD_DESCRIPTORS:
        os.set_inheritable(opened, True)  # noqa: FBT003 - it takes no name
    os.close(opened)
