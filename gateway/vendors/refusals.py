"""Diagnostics of a vendor's last error response: status, code and message.

An adapter converts a response into its own error, which loses detail. So the HTTP client records
each response here for the operator, and the engine reads it after a failed attempt.
"""

import json
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import attrs

# How much of an error's body is read.
_MAX_BODY_BYTES = 20_000
# Longer ones add no information. Prompts are removed later, and messages are cut after that.
_MAX_CODE_CHARS = 80
_MAX_WORDS_CHARS = 4_000
_CODES = ("code", "type", "status", "error_code", "reason")
_WORDS = ("message", "msg", "detail", "error_message", "error", "title", "description")
_FAILED = 400


@attrs.frozen(kw_only=True)
class Refusal:
    """A vendor's response with an error status."""

    status: int

    vendor_code: str
    """The vendor's error code, such as `invalid_api_key`, or empty."""

    vendor_message: str
    """The vendor's message, unmodified: it may quote a prompt or a key."""


def summarize(head: str, vendor_code: str, vendor_message: str) -> str:
    """Return one line: `status 401 invalid_api_key: Incorrect API key provided.`."""
    head = " ".join(filter(None, (head, vendor_code)))
    return f"{head}: {vendor_message}" if vendor_message else head


@attrs.define
class LastResponse:
    """The vendor's last response in one attempt."""

    newest: Refusal | None = None


_CURRENT: ContextVar[LastResponse | None] = ContextVar("last_response", default=None)


def begin_notes() -> None:
    """Start recording responses in the current asyncio task and the tasks it starts."""
    _CURRENT.set(LastResponse())


def newest_refusal() -> Refusal | None:
    """Return the last response if it was an error; None after a success."""
    note = _CURRENT.get()
    return note.newest if note is not None else None


def note_answer(status: int, body: bytes) -> None:
    """Record a response. An error is kept until the next response; a success clears it."""
    note = _CURRENT.get()
    if note is not None:
        note.newest = read_refusal(status, body) if status >= _FAILED else None


def note_no_answer() -> None:
    """Clear the last response, because the latest request has none."""
    note = _CURRENT.get()
    if note is not None:
        note.newest = None


def read_refusal(status: int, body: bytes) -> Refusal:
    """Extract code and message from an error response of any shape."""
    text = body[:_MAX_BODY_BYTES].decode(errors="replace")
    try:
        parsed: Any = json.loads(text)
    except (ValueError, RecursionError):
        # An HTML page has no useful message.
        words = "" if text.lstrip().startswith("<") else text
        return Refusal(status=status, vendor_code="", vendor_message=_one_line(words))
    fields = list(_objects_of(parsed))
    return Refusal(
        status=status,
        vendor_code=_one_line(_first_text(fields, _CODES))[:_MAX_CODE_CHARS],
        vendor_message=_one_line(
            parsed if isinstance(parsed, str) else _first_text(fields, _WORDS)
        ),
    )


def _objects_of(parsed: object, depth: int = 3) -> Iterator[Mapping[str, object]]:
    """Yield the objects that may describe an error, innermost first."""
    if isinstance(parsed, list) and parsed:
        yield from _objects_of(parsed[0], depth)
    if not isinstance(parsed, dict) or not depth:
        return
    for name in ("error", "errors", "detail", "error_detail"):
        yield from _objects_of(parsed.get(name), depth - 1)
    yield parsed


def _first_text(objects: list[Mapping[str, object]], names: tuple[str, ...]) -> str:
    """Find a value, preferring inner objects, then earlier names."""
    for each in objects:
        for name in names:
            value = each.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
                return str(value)
    return ""


def _one_line(text: str) -> str:
    """Join lines, and replace lone surrogates, which cannot be stored."""
    line = " ".join(text.split())[:_MAX_WORDS_CHARS]
    return line.encode(errors="replace").decode()
