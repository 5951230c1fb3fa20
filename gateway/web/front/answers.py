"""Responses of the routes, and the JSON of every error (spec §2.6)."""

import asyncio
import contextlib
import functools
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import attrs
import structlog
from quart import Quart, Response, request
from werkzeug.exceptions import HTTPException

from gateway.concurrency.awaiting import EagerStart
from gateway.errors import (
    ChainUnavailable,
    GatewayError,
    MethodNotAllowed,
    NotFound,
    PayloadTooLarge,
    ValidationError,
)
from gateway.running.gateway import Gateway
from gateway.web import wire
from gateway.web.front import Send
from gateway.web.front.current import current_gateway
from gateway.web.front.error_pages import ErrorPages, wants_page

JSON = {"Content-Type": "application/json"}
NOT_STORED = {"Cache-Control": "no-store"}
_Header = tuple[str, str]
# Ends the connection after the answer.
LAST = ("Connection", "close")
# An ASGI extension of our servers: a function that writes status, header lines and body at once. If
# it returns False, use `send` instead.
WHOLE_ANSWER = "gateway.whole_answer"
# Quart's timeout for a body in pieces; the fast path limits each piece instead.
_LONG_BODY_S = 600.0
# Forbidden in headers, as in uvicorn. Line breaks are counted instead.
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_log = structlog.get_logger()


@attrs.frozen(eq=False, repr=False)
class Pieces:
    """A long body: its size, and a function that yields it."""

    size: int
    read: Callable[[], AsyncGenerator[bytes, None]]


@attrs.frozen(eq=False, repr=False)
class Answer:
    """An answer without the headers that `gateway.web.front.headers` adds."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    # Replaces `body` if it is set.
    pieces: Pieces | None = None

    @property
    def size(self) -> int:
        """The size of the body in bytes."""
        return len(self.body) if self.pieces is None else self.pieces.size

    def to_response(self, method: str = "GET") -> Response:
        """Return a response for Quart; HEAD reads no pieces."""
        if self.pieces is None:
            return Response(self.body, self.status, dict(self.headers))
        body = self.pieces.read() if method != "HEAD" else b""
        response = Response(body, self.status, dict(self.headers))
        response.content_length = self.pieces.size
        response.timeout = _LONG_BODY_S
        return response


def json_answer(
    body: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Answer:
    """Return one line of JSON, in the format of Quart."""
    return Answer(status, wire.encode(body) + b"\n", JSON | dict(headers or {}))


async def send_answer(
    answer: Answer,
    own: Iterable[_Header],
    shared: tuple[_Header, ...],
    scope: Mapping[str, Any],
    send: Send,
    timeout_s: float,
) -> None:
    """Send an answer by ASGI, without Quart.

    `own` are headers of this answer alone, `shared` those that many answers share.
    """
    first = tuple(answer.headers.items())
    own = [("Content-Length", str(answer.size)), *own]
    write_whole = scope.get("extensions", {}).get(WHOLE_ANSWER)
    # Only the server itself can close the connection after an answer.
    if write_whole and answer.pieces is None and LAST not in shared:
        lines = b"".join((_cached_lines(first), _header_lines(own), _cached_lines(shared)))
        if write_whole(answer.status, lines, answer.body):
            return
    start = {
        "type": "http.response.start",
        "status": answer.status,
        "headers": [
            (name.lower().encode(), value.encode()) for name, value in (*first, *own, *shared)
        ],
    }
    if answer.pieces is not None:
        with contextlib.suppress(TimeoutError):
            await _send_pieces(start, answer.pieces, send, timeout_s)
        return
    sending = EagerStart(_send_both(start, answer.body, send))
    # As in Quart, for a client that does not read.
    if not sending.is_done:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await sending


def _header_lines(headers: Sequence[_Header]) -> bytes:
    """Return headers as lines of HTTP/1.1.

    Raises `ValueError` for a line break or another control character in a header.
    """
    lines = "".join([f"{name.lower()}: {value}\r\n" for name, value in headers]).encode()
    if lines.count(b"\n") != len(headers) or lines.count(b"\r") != len(headers):
        raise ValueError("A header of the answer has a line break.")
    if _CONTROL.search(lines):
        raise ValueError("A header of the answer has a control character.")
    return lines


# All 402s of an endpoint share the same 2 KB, and checking them costs more than all the rest.
_cached_lines = functools.lru_cache(maxsize=128)(_header_lines)


async def _send_both(start: dict[str, Any], body: bytes, send: Send) -> None:
    await send(start)
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def _send_pieces(start: dict[str, Any], pieces: Pieces, send: Send, timeout_s: float) -> None:
    """Send a long body; a client must take each piece within `timeout_s`."""
    await send(start)
    async with contextlib.aclosing(pieces.read()) as read:
        async for piece in read:
            async with asyncio.timeout(timeout_s):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def answer_errors(app: Quart) -> None:
    """Answer every error of an app in the specification's format, or a person with a page."""
    app.register_error_handler(HTTPException, _respond)
    app.register_error_handler(Exception, _respond)


async def _respond(error: Exception) -> Response:
    gateway = current_gateway()
    answer = answer_error(gateway, error, str(request.url_rule))
    if not wants_page(request) or not gateway.keeps(ErrorPages):
        return answer.to_response()
    try:
        page = await gateway.find(ErrorPages).render(answer.status)
    except Exception:  # noqa: BLE001 - any fault of a page: JSON answers as well
        _log.exception("request.failed", rule="error page")
        return answer.to_response()
    for name, value in answer.headers.items():
        if name != "Content-Type":
            page.headers[name] = value
    return page


def answer_error(gateway: Gateway, error: Exception, rule: str) -> Answer:
    """Return the answer to an error, and log unexpected ones; `rule` is the route's path."""
    if isinstance(error, GatewayError):
        return _answer_gateway_error(gateway, error)
    if isinstance(error, HTTPException) and 400 <= (error.code or 0) < 500:  # noqa: PLR2004
        allowed = getattr(error, "valid_methods", None)
        answer = _answer_gateway_error(gateway, _translate(error), status=error.code)
        more = {"Allow": ", ".join(allowed)} if allowed else {}
        return attrs.evolve(answer, headers={**answer.headers, **more})
    _log.error("request.failed", exc_info=error, rule=rule)
    return _answer_gateway_error(gateway, GatewayError("Internal error"))


def _answer_gateway_error(
    gateway: Gateway, error: GatewayError, *, status: int | None = None
) -> Answer:
    """Return the answer to a gateway error; `status` replaces its own."""
    body = {"error": gateway.redactor.without_secrets(error.message)}
    if error.code is not None:
        body["code"] = error.code
    # An RPC endpoint's message may contain the operator's key: only the log and `gateway check`
    # show it.
    if error.details is not None and not isinstance(error, ChainUnavailable):
        body["details"] = gateway.redactor.clean(error.details)
    headers = dict(NOT_STORED)
    retry_after_s = getattr(error, "retry_after_s", None)
    if retry_after_s is not None:
        headers["Retry-After"] = str(retry_after_s)
    return json_answer(body, status or error.status, headers)


def _translate(error: HTTPException) -> GatewayError:
    match error.code:
        case HTTPStatus.NOT_FOUND:
            return NotFound("There is nothing at this path. GET /llms.txt describes this service.")
        case HTTPStatus.METHOD_NOT_ALLOWED:
            # The sentence does not quote the method. A client could send a guess of a secret as
            # the method, and `without_secrets` would show whether the guess is right.
            return MethodNotAllowed(
                "This path does not take this method; the header Allow names those it takes."
            )
        case HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            return PayloadTooLarge("The body is too large.")
    return ValidationError(error.description or "Bad request.")
