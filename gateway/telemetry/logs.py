"""Structured log lines, without secrets and prompts: JSON in production, colours on a terminal."""

import contextlib
import inspect
import io
import json
import logging
import re
import sys
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, TextIO

import structlog

from gateway.telemetry.redaction import REDACTED, Redactor
from gateway.telemetry.request_lines import RequestLines

# Longer values are cut off. The thread that writes the line searches each character for prompts.
_MAX_CHARS = 20_000
# The form of our own events' names.
_EVENT = re.compile(r"request|started|draining|stopped|(x402|[a-z]+)\.[a-z_]+")
_PLAIN = frozenset((str, int, float, bool, type(None)))
# What the processors write into every event.
_OURS = frozenset(("level", "timestamp"))
# Names that processors and the context of a task add, also to lines of plugins.
_COMMON_NAMES = _OURS | frozenset(
    ("event", "exception", "task", "slug", "provider", "payment", "request")
)
_NONE: frozenset[str] = frozenset()


def configure_logs(
    log_format: str, redactor: Redactor | None = None, *, packages: Iterable[str] = ()
) -> None:
    """Send our events and the libraries' warnings to standard output, one line each.

    `packages` are the bundled plugins, whose lines are as trusted as the gateway's own.
    Tracebacks show source lines, never the values of variables.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderers: list[structlog.typing.Processor] = [
        structlog.processors.format_exc_info,
        redacting(redactor or Redactor(), packages),
        _render_json
        if log_format == "json"
        else structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
    ]
    first = [RequestLines(sys.stdout)] if log_format == "json" else []
    structlog.configure(
        processors=[*first, *shared, *renderers],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        # To the process's own output, past `redacted_output`: the values are clean already, and a
        # prompt that looks like a part of the line would be taken out of the line's own JSON.
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


def redacting(redactor: Redactor, packages: Iterable[str] = ()) -> structlog.typing.Processor:
    """Return the processor that takes secrets and prompts out of an event's names and values.

    It cleans them before they are rendered: taking a prompt that looks like JSON out of a
    rendered line would break the line.
    """
    own = _OwnWords(packages)

    def clean(value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, str):
            return redactor.clean(value if len(value) <= _MAX_CHARS else _cut(value))
        if isinstance(value, Mapping):
            return {clean(str(name)): clean(each) for name, each in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [clean(each) for each in value]
        return clean(repr(value))

    def process(_: Any, __: str, event_dict: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        foreign = own.find_foreign_names(event_dict)
        if _is_plain(event_dict) and not redactor.may_hold(_join_texts(event_dict, foreign)):
            return event_dict
        cleaned = {}
        for name, value in event_dict.items():
            is_ours = name in _OURS or (name == "event" and own.has_event(value))
            shown = clean(name) if name in foreign else name
            cleaned[shown] = value if is_ours else clean(value)
        return cleaned

    return process


class _OwnWords:
    """The names and events that the gateway's own code gives to its lines.

    They stay whole: a buyer may send `task.completed` or `transaction` as a prompt. Those that a
    plugin gives may quote what is to be hidden. Which code logs a line takes long to find out, so
    each word is remembered once our code has used it.
    """

    def __init__(self, packages: Iterable[str]) -> None:
        self._packages = frozenset(("gateway", *packages))
        self._names = set(_COMMON_NAMES)
        self._events: set[str] = set()

    def find_foreign_names(self, event: Mapping[str, Any]) -> Collection[str]:
        """Return the names in an event that a plugin chose."""
        if self._names.issuperset(event):
            return _NONE
        foreign = event.keys() - self._names
        if _is_logged_by(self._packages):
            # A plugin may have bound names that all later lines carry.
            own = foreign - structlog.contextvars.get_contextvars().keys()
            self._names |= own
            foreign -= own
        return foreign

    def has_event(self, told: Any) -> bool:
        """Whether the text of the event that is being logged is a name of our own."""
        if not isinstance(told, str):
            return False
        if told not in self._events and _EVENT.fullmatch(told) and _is_logged_by(self._packages):
            self._events.add(told)
        return told in self._events


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
    """Return a cleaned event as JSON; structlog's own renderer makes an encoder for each."""
    return json.dumps(event)


def _is_plain(event: Mapping[str, Any]) -> bool:
    """Whether an event holds only texts and numbers, as the event of each request does."""
    return _PLAIN.issuperset(map(type, event.values()))


def _join_texts(event: Mapping[str, Any], names: Collection[str]) -> str:
    texts = [value for value in event.values() if isinstance(value, str)]
    texts.extend(names)
    return "\n".join(texts)


def _cut(text: str) -> str:
    return text[:_MAX_CHARS] + REDACTED


@contextlib.contextmanager
def redacted_output(redactor: Redactor) -> Iterator[None]:
    """Take secrets and prompts out of the output of plugins and of Python's own messages."""
    out, err = _Redacted(sys.stdout, redactor), _Redacted(sys.stderr, redactor)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            yield
        finally:
            out.end()
            err.end()


class _Redacted(io.TextIOBase):
    """A text stream that passes whole lines on to another, without secrets and prompts.

    A line is held until it ends, because `print` writes its arguments one by one.
    """

    def __init__(self, stream: TextIO, redactor: Redactor) -> None:
        self._stream = stream
        self._redactor = redactor
        # Holds each thread's unfinished line.
        self._local = threading.local()

    def write(self, text: str) -> int:
        """Pass complete lines on."""
        whole, newline, rest = (getattr(self._local, "line", "") + text).rpartition("\n")
        if len(rest) > _MAX_CHARS:
            whole, newline, rest = whole + newline + rest, "", ""
        self._local.line = rest
        if whole or newline:
            self._stream.write(self._redactor.clean(whole) + newline)
            self._stream.flush()
        return len(text)

    def end(self) -> None:
        """Pass an unfinished line on."""
        self.write("")
        rest, self._local.line = getattr(self._local, "line", ""), ""
        if rest:
            self._stream.write(self._redactor.clean(rest))
        self._stream.flush()

    def flush(self) -> None:
        """Do nothing: half of a line may end in half of a secret."""

    @property
    def buffer(self) -> "_Bytes":
        """The stream for callers that write bytes."""
        return _Bytes(self)

    # Python's own streams have a plain attribute here, but their base class cannot be assigned to.
    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the other stream."""
        return self._stream.encoding

    def isatty(self) -> bool:
        """Whether the other stream is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Return the other stream's file descriptor, for callers that need one."""
        return self._stream.fileno()

    def writable(self) -> bool:
        """Return True: this stream only writes."""
        return True


class _Bytes(io.RawIOBase):
    """Writes bytes as text."""

    def __init__(self, stream: _Redacted) -> None:
        self._stream = stream

    def write(self, data: Any) -> int:
        """Pass the bytes on as text."""
        self._stream.write(bytes(data).decode(errors="replace"))
        return len(data)

    def writable(self) -> bool:
        """Return True: this stream only writes."""
        return True
