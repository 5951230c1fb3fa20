"""Writes the log line of a plain request in one step, past the processors of other events.

The lines of requests are by far the most frequent ones. What the processors add is known here:
such a line holds only the gateway's own words, so there is nothing to redact.
"""

import time
from collections.abc import MutableMapping
from typing import Any

import structlog

_EVENT = "request"
# With the event's name. A line that has more, such as a plugin's context, is no plain one.
_FIELDS = frozenset(("event", "method", "rule", "status", "ms", "request"))
_METHODS = ("GET", "POST")
_LINE = (
    '{"method": "%s", "rule": "%s", "status": %d, "ms": %s, "event": "request", '
    '"request": "%s", "level": "info", "timestamp": "%s.%06dZ"}'
)


class RequestLines:
    """A processor of structlog that writes plain requests and hands every other event on."""

    def __init__(self) -> None:
        # The second of the last line, and how a line names it.
        self._second = -1
        self._written_second = ""

    def __call__(
        self, logger: Any, _: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        """Write a plain request and raise `DropEvent`; return every other event as it is."""
        if not is_plain(event):
            return event
        fields = (event["method"], event["rule"], event["status"], event["ms"], event["request"])
        line = _LINE % (*fields, *self._read_clock())
        logger.info(line)
        raise structlog.DropEvent

    def _read_clock(self) -> tuple[str, int]:
        """Return the time in UTC up to its second, and the microseconds of that second."""
        second, microseconds = divmod(time.time_ns() // 1_000, 1_000_000)
        if second != self._second:
            self._second = second
            self._written_second = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return self._written_second, microseconds


def is_plain(event: MutableMapping[str, Any]) -> bool:
    """Whether an event is a request's, with nothing in it that a client or a plugin chose.

    `headers.end_request` names the request's id only where the gateway made it.
    """
    return (
        event.get("event") == _EVENT
        and event.keys() == _FIELDS
        and event["method"] in _METHODS
        and event["rule"] is not None
    )
