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
_MAX_BYTES = 1_000_000
_BYTES_AT_ONCE = 65_536
# Lines wait this long for others, because waking the thread for each takes the GIL from the event
# loop.
_PAUSE_S = 0.05
# How long `close` waits for a slow or stopped reader.
_CLOSE_S = 3.0
_STANDARD_DESCRIPTORS = (0, 1, 2)


class LogQueue:
    """Writes lines to file descriptors, in order, from its own thread."""

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._queue: queue.SimpleQueue[tuple[int, bytes]] = queue.SimpleQueue()
        # Set to end the pause between two batches: the queue is long, or closing.
        self._is_urgent = threading.Event()
        # The garbage collector may log within `put`, in the same thread.
        self._lock = threading.RLock()
        self._waiting_bytes = 0
        # Dropped lines that have not been reported yet.
        self._dropped = 0
        self._is_closing = False
        self._thread = threading.Thread(target=self._write_forever, name="log", daemon=True)
        self._thread.start()

    def put(self, descriptor: int, data: bytes) -> None:
        """Queue lines, or drop them if the queue is full."""
        with self._lock:
            # The writer's own line about dropped lines is always accepted.
            is_taken = self._waiting_bytes < self._max_bytes or (
                threading.current_thread() is self._thread
            )
            if is_taken:
                self._waiting_bytes += len(data)
        if is_taken:
            self._queue.put((descriptor, data))
            if self._waiting_bytes >= _BYTES_AT_ONCE and not self._is_urgent.is_set():
                self._is_urgent.set()
        else:
            self._count_dropped(data.count(b"\n"))

    def close(self, timeout_s: float = _CLOSE_S) -> bool:
        """Flush the queue; returns whether that succeeded in time."""
        self._is_closing = True
        self._is_urgent.set()
        self._queue.put((-1, b""))
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    # -- in the writer thread

    def _write_forever(self) -> None:
        while not (self._is_closing and self._queue.empty()):
            batch = self._take_batch()
            for descriptor, texts in itertools.groupby(batch, operator.itemgetter(0)):
                self._write(descriptor, b"".join(text for _, text in texts))
            with self._lock:
                self._waiting_bytes -= sum(len(text) for _, text in batch)

    def _take_batch(self) -> list[tuple[int, bytes]]:
        """Wait for a text, and return it with those queued behind it."""
        batch = [self._queue.get()]
        # The queue has no sleeper now, so further lines wake no thread.
        self._is_urgent.wait(_PAUSE_S)
        if not self._is_closing:
            self._is_urgent.clear()
        size = len(batch[0][1])
        while size < _BYTES_AT_ONCE and not self._queue.empty():
            batch.append(self._queue.get())
            size += len(batch[-1][1])
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

            structlog.get_logger().warning("log.dropped", lines=lines)


class _QueuedOutput(io.RawIOBase):
    """The bytes of a standard stream, whose writes never wait."""

    def __init__(self, log: LogQueue, descriptor: int) -> None:
        self._log = log
        self._descriptor = descriptor

    def write(self, data: Any) -> int:
        """Queue the bytes."""
        self._log.put(self._descriptor, bytes(data))
        return len(data)

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


def _queued(log: LogQueue, stream: TextIO | None, descriptor: int) -> TextIO:
    """Return a queued stream; `stream` is None if the descriptor was closed at startup."""
    encoding = "utf-8"
    if stream is not None:
        try:
            descriptor, encoding = stream.fileno(), stream.encoding
        except (OSError, ValueError):
            return stream
    output: Any = _QueuedOutput(log, descriptor)
    return io.TextIOWrapper(output, encoding, "backslashreplace", write_through=True)


def _fill_standard_descriptors() -> None:
    """Open /dev/null for closed descriptors, or the next opened file would take their numbers."""
    while (opened := os.open(os.devnull, os.O_RDWR)) in _STANDARD_DESCRIPTORS:
        os.set_inheritable(opened, True)  # noqa: FBT003 - it takes no name
    os.close(opened)
