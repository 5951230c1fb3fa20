"""Structured logs without secrets and prompts: JSON in production, colours on a terminal."""

import contextlib
import inspect
import io
import json
import logging
import os
import re
import sys
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, TextIO

import structlog

from gateway.telemetry.redaction import REDACTED, Redactor
from gateway.telemetry.request_lines import RequestLines

# Longer values are truncated, because the logging thread searches every character for prompts.
_MAX_CHARS = 20_000
# The gateway's own event names.
_EVENT = re.compile(r"request|started|draining|stopped|(x402|[a-z]+)\.[a-z_]+")
_PLAIN = frozenset((str, int, float, bool, type(None)))
# Fields that the processors add to every event.
_OURS = frozenset(("level", "timestamp"))
# Fields that processors and a task's context add, to plugins' lines too.
_COMMON_NAMES = _OURS | frozenset(
    ("event", "exception", "task", "slug", "provider", "payment", "request")
)
_NONE: frozenset[str] = frozenset()


def configure_logs(
    log_format: str, redactor: Redactor | None = None, *, packages: Iterable[str] = ()
) -> None:
    """Log our events and the libraries' warnings to standard output, one line each.

    `packages` are the bundled plugins, which are trusted like the gateway's own code.
    Tracebacks show source lines, never the values of variables.
    """
    is_json = log_format == "json" or (log_format == "auto" and not is_terminal(sys.stdout))
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderers: list[structlog.typing.Processor] = [
        structlog.processors.format_exc_info,
        redacting(redactor or Redactor(), packages),
        _render_json
        if is_json
        else structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
    ]
    first = [RequestLines(sys.stdout)] if is_json else []
    structlog.configure(
        processors=[*first, *shared, *renderers],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        # Bypasses `redacted_output`: the values are clean already, and redacting the rendered line
        # could break its JSON.
        logger_factory=structlog.WriteLoggerFactory(sys.stdout),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
        )
    )
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person reads this stream: also if it is wrapped, as the server's output is."""
    try:
        return stream is not None and os.isatty(stream.fileno())
    except (OSError, ValueError):
        return False


def redacting(redactor: Redactor, packages: Iterable[str] = ()) -> structlog.typing.Processor:
    """Return the processor that redacts secrets and prompts in an event's names and values.

    It runs before rendering: redacting a prompt that looks like JSON in a rendered line would
    break the line.
    """
    own = _OwnWords(packages)

    def clean(value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, str):
            is_long = len(value) > _MAX_CHARS
            return redactor.clean(value[:_MAX_CHARS] + REDACTED if is_long else value)
        if isinstance(value, Mapping):
            return {clean(str(name)): clean(each) for name, each in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [clean(each) for each in value]
        return clean(repr(value))

    def process(_: Any, __: str, event_dict: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        foreign = own.find_foreign_names(event_dict)
        # As in most events.
        if _PLAIN.issuperset(map(type, event_dict.values())):
            texts = [value for value in event_dict.values() if isinstance(value, str)]
            if not redactor.may_hold("\n".join((*texts, *foreign))):
                return event_dict
        cleaned = {}
        for name, value in event_dict.items():
            is_ours = name in _OURS or (name == "event" and own.has_event(value))
            shown = clean(name) if name in foreign else name
            cleaned[shown] = value if is_ours else clean(value)
        return cleaned

    return process


class _OwnWords:
    """The field and event names that the gateway's own code logs.

    They are never redacted, even if a buyer sends `task.completed` or `transaction` as a prompt.
    Names from a plugin may quote a secret, so they are. Finding the caller of the logger is slow,
    so each name is remembered once our code has used it.
    """

    def __init__(self, packages: Iterable[str]) -> None:
        self._packages = frozenset(("gateway", *packages))
        self._names = set(_COMMON_NAMES)
        self._events: set[str] = set()

    def find_foreign_names(self, event: Mapping[str, Any]) -> Collection[str]:
        """Return the field names in an event that a plugin chose."""
        if self._names.issuperset(event):
            return _NONE
        foreign = event.keys() - self._names
        if _is_logged_by(self._packages):
            # A plugin may have bound names in the context of all later lines.
            own = foreign - structlog.contextvars.get_contextvars().keys()
            self._names |= own
            foreign -= own
        return foreign

    def has_event(self, name: Any) -> bool:
        """Whether the event being logged has one of our own names."""
        if not isinstance(name, str):
            return False
        if name not in self._events and _EVENT.fullmatch(name) and _is_logged_by(self._packages):
            self._events.add(name)
        return name in self._events


def _is_logged_by(packages: Collection[str]) -> bool:
    """Whether a module of one of these packages called the logger."""
    frame = inspect.currentframe()
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        package = module.partition(".")[0]
        if package != "structlog" and module != __name__:
            return package in packages
        frame = frame.f_back
    return False


def _render_json(_: Any, __: str, event: Mapping[str, Any]) -> str:
    """Render a cleaned event as JSON; structlog's own renderer creates an encoder per line."""
    return json.dumps(event)


@contextlib.contextmanager
def redacted_output(redactor: Redactor) -> Iterator[None]:
    """Redact secrets and prompts in the output of plugins and in Python's own messages."""
    out, err = _Redacted(sys.stdout, redactor), _Redacted(sys.stderr, redactor)
    with contextlib.redirect_stdout(out.text), contextlib.redirect_stderr(err.text):
        try:
            yield
        finally:
            out.end()
            err.end()


class _Redacted(io.RawIOBase):
    """A stream that redacts secrets and prompts, line by line.

    It buffers until the end of a line, because `print` writes its arguments one by one.
    """

    def __init__(self, stream: TextIO, redactor: Redactor) -> None:
        self._stream = stream
        self._redactor = redactor
        # Holds each thread's unfinished line.
        self._local = threading.local()
        raw: Any = self
        self.text = io.TextIOWrapper(raw, "utf-8", "backslashreplace", write_through=True)

    def write(self, data: Any) -> int:
        """Write complete lines; buffer the rest."""
        text = getattr(self._local, "line", "") + bytes(data).decode(errors="replace")
        whole, newline, rest = text.rpartition("\n")
        if len(rest) > _MAX_CHARS:
            whole, newline, rest = text, "", ""
        self._local.line = rest
        if whole or newline:
            self._stream.write(self._redactor.clean(whole) + newline)
            self._stream.flush()
        return len(data)

    def end(self) -> None:
        """Write the unfinished line."""
        rest, self._local.line = getattr(self._local, "line", ""), ""
        if rest:
            self._stream.write(self._redactor.clean(rest))
        self._stream.flush()

    def isatty(self) -> bool:
        """Whether the wrapped stream is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Return the wrapped stream's file descriptor."""
        return self._stream.fileno()

    def writable(self) -> bool:
        """Return True: this stream only writes."""
        return True
