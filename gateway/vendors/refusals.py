"""What a vendor said when it refused or failed: status, code and words of its newest answer.

An adapter turns an answer into an error of its own, which keeps little of it. The operator wants to
read what the vendor said, so the HTTP client notes each answer here, and the engine reads the note
when an attempt has failed.
"""

import json
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import attrs

# Of an error's body that is read at all.
_MAX_BODY_BYTES = 20_000
# Longer codes and words say no more. A prompt is taken out later, so words are cut after that.
_MAX_CODE_CHARS = 80
_MAX_WORDS_CHARS = 4_000
_CODES = ("code", "type", "status", "error_code", "reason")
_WORDS = ("message", "msg", "detail", "error_message", "error", "title", "description")
_FAILED = 400


@attrs.frozen(kw_only=True)
class Refusal:
    """A vendor's answer with an error's status."""

    status: int

    vendor_code: str
    """The vendor's own word for the error, such as `invalid_api_key`; empty without one."""

    said: str
    """The vendor's sentence, as it came: it may quote a prompt or a key."""


def summarize(head: str, vendor_code: str, said: str) -> str:
    """Return one line: `status 401 invalid_api_key: Incorrect API key provided.`."""
    head = " ".join(filter(None, (head, vendor_code)))
    return f"{head}: {said}" if said else head


@attrs.define
class Heard:
    """What the vendor said last in one attempt."""

    newest: Refusal | None = None


_CURRENT: ContextVar[Heard | None] = ContextVar("heard", default=None)


def begin_notes() -> None:
    """Note the answers of the current asyncio task, and of those it starts, from now on."""
    _CURRENT.set(Heard())


def newest_refusal() -> Refusal | None:
    """Return the vendor's newest answer if it was a refusal; None after a success."""
    note = _CURRENT.get()
    return note.newest if note is not None else None


def note_answer(status: int, body: bytes) -> None:
    """Note an answer: a refusal is kept until the next answer, and a success forgets it."""
    note = _CURRENT.get()
    if note is not None:
        note.newest = read_refusal(status, body) if status >= _FAILED else None


def note_no_answer() -> None:
    """Forget the answer before: the newest request had none."""
    note = _CURRENT.get()
    if note is not None:
        note.newest = None


def read_refusal(status: int, body: bytes) -> Refusal:
    """Return what an error's answer says, whatever its shape."""
    text = body[:_MAX_BODY_BYTES].decode(errors="replace")
    try:
        told: Any = json.loads(text)
    except (ValueError, RecursionError):
        # A page in HTML says nothing that is worth a line.
        words = "" if text.lstrip().startswith("<") else text
        return Refusal(status=status, vendor_code="", said=_one_line(words))
    fields = list(_objects_of(told))
    return Refusal(
        status=status,
        vendor_code=_one_line(_first_text(fields, _CODES))[:_MAX_CODE_CHARS],
        said=_one_line(told if isinstance(told, str) else _first_text(fields, _WORDS)),
    )


def _objects_of(told: object, depth: int = 3) -> Iterator[Mapping[str, object]]:
    """Yield the objects in which an error may be told, the innermost first."""
    if isinstance(told, list) and told:
        yield from _objects_of(told[0], depth)
    if not isinstance(told, dict) or not depth:
        return
    for name in ("error", "errors", "detail", "error_detail"):
        yield from _objects_of(told.get(name), depth - 1)
    yield told


def _first_text(objects: list[Mapping[str, object]], names: tuple[str, ...]) -> str:
    """Return the first value that is a word or a number, by object and then by name."""
    for each in objects:
        for name in names:
            value = each.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
                return str(value)
    return ""


def _one_line(text: str) -> str:
    """Return a text without line breaks that can be stored: JSON may hold half a surrogate pair."""
    line = " ".join(text.split())[:_MAX_WORDS_CHARS]
    return line.encode(errors="replace").decode()
