"""Reads code and message of a vendor's error response, of any shape."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.catalog.notes import Refusal, note_refusal

# How much of an error's body is read.
_MAX_BODY_BYTES = 20_000
# Longer ones add no information. Prompts are removed later, and messages are cut after that.
_MAX_CODE_CHARS = 80
_MAX_WORDS_CHARS = 4_000
_CODES = ("code", "type", "status", "error_code", "reason")
_WORDS = ("message", "msg", "detail", "error_message", "error", "title", "description")
_FAILED = 400


def note_answer(status: int, body: bytes) -> None:
    """Record a response. An error is kept until the next response; a success clears it."""
    note_refusal(read_refusal(status, body) if status >= _FAILED else None)


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
