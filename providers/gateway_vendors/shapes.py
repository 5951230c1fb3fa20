"""The shape of a vendor's responses: field names and types, without content.

Operators may send it to the project, to show that an adapter matches the vendor's current API
(`gateway check --live`). So it contains no texts, numbers or addresses.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

# The responses recorded for one generation; a job is polled for minutes.
_MAX_ANSWERS = 20
_MAX_DEPTH = 10
_MAX_FIELDS = 60
# Any other name may be a value, such as a job's id, which has more digits.
_FIELD = re.compile(r"(?!(?:.*\d){3})[A-Za-z$_][A-Za-z0-9$_-]{0,39}")
# Fields with values from the API's own vocabulary, and the pattern of such values.
_STATES = ("status", "state", "type", "object", "finishReason", "media_type", "mimeType")
_STATE = re.compile(r"[A-Za-z][A-Za-z_/ -]{0,39}")

Shapes = list[dict[str, Any]]
_CURRENT: ContextVar[Shapes | None] = ContextVar("shapes", default=None)


@contextmanager
def record_shapes() -> Iterator[Shapes]:
    """Collect the shapes of all responses inside the block: method, status and body."""
    found: Shapes = []
    token = _CURRENT.set(found)
    try:
        yield found
    finally:
        _CURRENT.reset(token)


def note_shape(method: str, status: int, body: bytes) -> None:
    """Record a response while collecting, unless it has the same shape as the one before."""
    found = _CURRENT.get()
    if found is None or len(found) >= _MAX_ANSWERS:
        return
    try:
        shape = shape_of(json.loads(body))
    except (ValueError, RecursionError):
        shape = "not JSON" if body else "empty"
    answer = {"method": method, "status": status, "body": shape}
    if found[-1:] != [answer]:
        found.append(answer)


def shape_of(value: object, name: str = "", depth: int = 0) -> Any:
    """Replace every text, number and unusual name in a JSON value by its type."""
    if isinstance(value, dict | list) and depth >= _MAX_DEPTH:
        return "deeper"
    if isinstance(value, dict):
        fields = list(value.items())[:_MAX_FIELDS]
        return {
            (key if _FIELD.fullmatch(key) else "(a value)"): shape_of(entry, key, depth + 1)
            for key, entry in fields
        }
    if isinstance(value, list):
        return [shape_of(entry, "", depth + 1) for entry in value[:1]]
    if isinstance(value, str):
        return value if name in _STATES and _STATE.fullmatch(value) else "text"
    if value is None or isinstance(value, bool):
        return value
    return "number"
