"""An answer before it is sent; routes make it, and Quart or the fast path sends it."""

from collections.abc import Mapping
from typing import Any

import attrs
from quart import Response

from gateway.web import wire

JSON = {"Content-Type": "application/json"}
NOT_STORED = {"Cache-Control": "no-store"}


@attrs.frozen
class Answer:
    """An answer without the headers that every answer carries; `gateway.web.headers` adds them."""

    status: int
    body: bytes
    headers: Mapping[str, str]

    def to_response(self) -> Response:
        """Return the answer as Quart takes it."""
        return Response(self.body, self.status, dict(self.headers))


def json_answer(
    body: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Answer:
    """Return an answer of one line of JSON, as Quart writes it."""
    return Answer(status, f"{wire.dumps(body)}\n".encode(), JSON | dict(headers or {}))
