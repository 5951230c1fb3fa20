"""Malformed payment headers, as any client may send them."""

import base64
import json
from collections.abc import Iterator
from typing import Any

GARBAGE = (
    *("", " ", "null", "{}", "é", "\0", "=" * 100, "A" * 1_000_000),
    *(base64.b64encode(text).decode() for text in (b"null", b"[]", b"5", b"{}", b"\xff" * 9)),
    base64.b64encode(b"[" * 3000).decode(),
    base64.b64encode(b'{"a":' * 3000).decode(),
)
_ODD: tuple[Any, ...] = (None, [], {}, True, -1, 2**256, 1e300, "", "0x", "é", "\0", "9" * 400)


def damaged(header: str) -> Iterator[str]:
    """Yield variants of a header: cut, with a changed character, with odd values in its JSON."""
    for place in range(0, len(header), 7):
        yield header[:place]
        yield f"{header[:place]}!{header[place + 1 :]}"
    try:
        content = json.loads(base64.b64decode(header + "=="))
    except ValueError:
        return
    for path in list(_paths(content)):
        for odd in _ODD:
            copy = json.loads(json.dumps(content))
            inner = copy
            for step in path[:-1]:
                inner = inner[step]
            inner[path[-1]] = odd
            yield base64.b64encode(json.dumps(copy).encode()).decode()


def _paths(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to every value in a JSON object."""
    for name, inner in value.items() if isinstance(value, dict) else ():
        yield (*above, name)
        yield from _paths(inner, (*above, name))
