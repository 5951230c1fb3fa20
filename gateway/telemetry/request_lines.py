"""Writes the log line of a plain request in one step, past the processors of other events.

The lines of requests are by far the most frequent ones. What the processors add is known here:
such a line holds only the gateway's own words, so there is nothing to redact. Lines of one turn of
the event loop are written together, because a write costs more than all the rest of a line.
"""

import asyncio
import time
from collections import deque
from collections.abc import MutableMapping
from typing import Any, TextIO

import structlog

_EVENT = "request"
# With the event's name. A line that has more, such as a plugin's context, is no plain one.
_FIELDS = frozenset(("event", "method", "rule", "status", "ms", "request"))
_METHODS = ("GET", "POST")
_LINE = (
    '{"method": "%s", "rule": "%s", "status": %d, "ms": %s, "event": "request", '
    '"request": "%s", "level": "info", "timestamp": "%s.%06dZ"}\n'
)
_log = structlog.get_logger()


class RequestLines:
    """A processor of structlog that writes plain requests and hands every other event on.

    `stream` takes the lines: the process's own output, as nothing in them is to be redacted.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        # Threads log, too: each line is taken out once, by one writer.
        self._waiting: deque[str] = deque()
        # The second of the last line, and how a line names it.
        self._second = -1
        self._written_second = ""

    def __call__(
        self, _: Any, __: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        """Write a plain request and raise `DropEvent`; return every other event as it is."""
        if not is_plain(event):
            self.flush()
            return event
        self.add(event["method"], event["rule"], event["status"], event["ms"], event["request"])
        raise structlog.DropEvent

    def add(self, method: str, rule: str, status: int, ms: float, request: str) -> None:
        """Write a plain request's line at the end of the loop's turn; at once without a loop."""
        self._waiting.append(_LINE % (method, rule, status, ms, request, *self._read_clock()))
        if len(self._waiting) > 1:
            return
        try:
            asyncio.get_running_loop().call_soon(self.flush)
        except RuntimeError:
            self.flush()

    def flush(self) -> None:
        """Write what waits, before a later event is written."""
        lines = []
        while self._waiting:
            lines.append(self._waiting.popleft())
        if lines:
            self._stream.write("".join(lines))
            self._stream.flush()

    def _read_clock(self) -> tuple[str, int]:
        """Return the time in UTC up to its second, and the microseconds of that second."""
        second, microseconds = divmod(time.time_ns() // 1_000, 1_000_000)
        if second != self._second:
            self._second = second
            self._written_second = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return self._written_second, microseconds


def log_request(method: str, rule: str | None, status: int, ms: float, request: str | None) -> None:
    """Log a request's end; `request` is the id that the gateway gave it, None if a proxy gave it.

    A plain one goes past structlog, unless something else than `configure_logs` configured that.
    """
    first = next(iter(structlog.get_config()["processors"]), None)
    if isinstance(first, RequestLines) and request and rule is not None and method in _METHODS:
        first.add(method, rule, status, ms, request)
        return
    # Values that a client chose may contain anything, so they go through the redactor.
    own = {} if request is None else {"request": request}
    _log.info("request", method=method, rule=rule, status=status, ms=ms, **own)


def is_plain(event: MutableMapping[str, Any]) -> bool:
    """Whether an event is a request's, with nothing in it that a client or a plugin chose.

    `log_request` includes the request's id only if the gateway made it.
    """
    return (
        event.get("event") == _EVENT
        and event.keys() == _FIELDS
        and event["method"] in _METHODS
        and event["rule"] is not None
    )
