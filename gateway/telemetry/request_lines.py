"""Fast path for the log lines of requests, past structlog's processors.

These lines are by far the most frequent, and contain only the gateway's own words, so there is
nothing to redact. Lines of one event loop iteration are written together, because the write is the
most expensive part of a line.
"""

import asyncio
import time
from collections import deque
from collections.abc import MutableMapping
from typing import Any, TextIO

import structlog

_METHODS = ("GET", "POST")
_LINE = (
    '{"method": "%s", "rule": "%s", "status": %d, "ms": %s, "event": "request", '
    '"request": "%s", "level": "info", "timestamp": "%s.%06dZ"}\n'
)
_log = structlog.get_logger()


class RequestLines:
    """A structlog processor that writes plain request lines, before any other event.

    `stream` is the process's unredacted output.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        # Threads log, too. A deque hands each line to exactly one of them.
        self._waiting: deque[str] = deque()
        # The second of the last line, and its cached text.
        self._second = -1
        self._written_second = ""

    def __call__(
        self, _: Any, __: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        """Write the queued lines before another event."""
        self.flush()
        return event

    def add(self, method: str, rule: str, status: int, ms: float, request: str) -> None:
        """Queue a request's line for the next loop iteration; without a loop, write it now."""
        self._waiting.append(_LINE % (method, rule, status, ms, request, *self._read_clock()))
        if len(self._waiting) > 1:
            return
        try:
            asyncio.get_running_loop().call_soon(self.flush)
        except RuntimeError:
            self.flush()

    def flush(self) -> None:
        """Write the queued lines."""
        lines = []
        while self._waiting:
            lines.append(self._waiting.popleft())
        if lines:
            self._stream.write("".join(lines))
            self._stream.flush()

    def _read_clock(self) -> tuple[str, int]:
        """Return the UTC time, truncated to the second, and its microseconds."""
        second, microseconds = divmod(time.time_ns() // 1_000, 1_000_000)
        if second != self._second:
            self._second = second
            self._written_second = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return self._written_second, microseconds


def log_request(method: str, rule: str | None, status: int, ms: float, request: str | None) -> None:
    """Log the end of a request; `request` is its id, or None if a proxy chose the id.

    Plain lines bypass structlog if `configure_logs` has configured it.
    """
    first = next(iter(structlog.get_config()["processors"]), None)
    if isinstance(first, RequestLines) and request and rule is not None and method in _METHODS:
        first.add(method, rule, status, ms, request)
        return
    # Values from a client may contain anything, so they go through the redactor.
    own = {} if request is None else {"request": request}
    _log.info("request", method=method, rule=rule, status=status, ms=ms, **own)
