"""Answers before they are sent: those of the routes, and the JSON of every error (spec §2.6)."""

import asyncio
import contextlib
import functools
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import attrs
import structlog
from quart import Quart, Response, request
from werkzeug.exceptions import HTTPException

from gateway.concurrency.awaiting import EagerStart
from gateway.errors import (
    BodiesFull,
    ChainUnavailable,
    ChecksFull,
    GatewayError,
    MethodNotAllowed,
    NobodyWorks,
    NotFound,
    PayloadTooLarge,
    Restarting,
    SellsNothing,
    StoreUnavailable,
    TooManyRequests,
    ValidationError,
)
from gateway.running.gateway import Gateway
from gateway.web import wire
from gateway.web.front.current import current_gateway

JSON = {"Content-Type": "application/json"}
NOT_STORED = {"Cache-Control": "no-store"}
_Header = tuple[str, str]
# Of an answer that is its connection's last one.
LAST = ("Connection", "close")
Send = Callable[[dict[str, Any]], Awaitable[None]]
# An ASGI extension of our uvicorn's: a function of status, header lines and body that writes all of
# them at once. It returns False where the answer must go by `send`.
WHOLE_ANSWER = "gateway.whole_answer"
# For a body in pieces, where Quart sends it; the fast path gives each piece a time of its own.
_LONG_BODY_S = 600.0
# What no header may hold besides line breaks, which are counted; uvicorn refuses the same.
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
# Errors that say when to ask again.
_LATER = (
    TooManyRequests,
    BodiesFull,
    ChecksFull,
    Restarting,
    NobodyWorks,
    SellsNothing,
    StoreUnavailable,
)
_log = structlog.get_logger()


@attrs.frozen
class Pieces:
    """A long body: its size, and a function that yields it."""

    size: int
    read: Callable[[], AsyncGenerator[bytes, None]]


@attrs.frozen
class Answer:
    """An answer without the headers that `gateway.web.front.headers` adds."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    # A body that is sent in pieces, in place of `body`.
    pieces: Pieces | None = None

    @property
    def size(self) -> int:
        """The bytes of the body."""
        return len(self.body) if self.pieces is None else self.pieces.size

    def to_response(self, method: str = "GET") -> Response:
        """Return the answer as Quart takes it; for HEAD no piece is made."""
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
    """Return an answer of one line of JSON, as Quart writes it."""
    return Answer(status, wire.encode(body) + b"\n", JSON | dict(headers or {}))


async def send_answer(
    answer: Answer,
    own: Iterable[_Header],
    standing: tuple[_Header, ...],
    scope: Mapping[str, Any],
    send: Send,
    timeout_s: float,
) -> None:
    """Send an answer by ASGI, past Quart.

    `own` are further headers that no other answer has, `standing` those that many have.
    """
    first = tuple(answer.headers.items())
    own = [("Content-Length", str(answer.size)), *own]
    write_whole = scope.get("extensions", {}).get(WHOLE_ANSWER)
    # Only the server itself closes the connection after its answer.
    if write_whole and answer.pieces is None and LAST not in standing:
        lines = b"".join((_kept_lines(first), _header_lines(own), _kept_lines(standing)))
        if write_whole(answer.status, lines, answer.body):
            return
    start = {
        "type": "http.response.start",
        "status": answer.status,
        "headers": [
            (name.lower().encode(), value.encode()) for name, value in (*first, *own, *standing)
        ],
    }
    if answer.pieces is not None:
        with contextlib.suppress(TimeoutError):
            await _send_pieces(start, answer.pieces, send, timeout_s)
        return
    sending = EagerStart(_send_both(start, answer.body, send))
    # As Quart does, for a client that does not read.
    if not sending.is_done:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await sending


def _header_lines(headers: Sequence[_Header]) -> bytes:
    """Return headers as HTTP/1.1 writes them.

    Raises `ValueError` for one that is two lines or has a control character.
    """
    lines = "".join([f"{name.lower()}: {value}\r\n" for name, value in headers]).encode()
    if lines.count(b"\n") != len(headers) or lines.count(b"\r") != len(headers):
        raise ValueError("A header of the answer has a line break.")
    if _CONTROL.search(lines):
        raise ValueError("A header of the answer has a control character.")
    return lines


# An endpoint's challenge is the same 2 KB in each 402. Searching it takes longer than all the rest.
_kept_lines = functools.lru_cache(maxsize=128)(_header_lines)


async def _send_both(start: dict[str, Any], body: bytes, send: Send) -> None:
    await send(start)
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def _send_pieces(start: dict[str, Any], pieces: Pieces, send: Send, timeout_s: float) -> None:
    """Send a long body; a slow client may take long for all of it, and `timeout_s` for a piece."""
    await send(start)
    async with contextlib.aclosing(pieces.read()) as read:
        async for piece in read:
            async with asyncio.timeout(timeout_s):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def answer_errors(app: Quart) -> None:
    """Let the app answer every error in the specification's shape."""
    app.register_error_handler(HTTPException, _respond)
    app.register_error_handler(Exception, _respond)


async def _respond(error: Exception) -> Response:
    return answer_error(current_gateway(), error, str(request.url_rule)).to_response()


def answer_error(gateway: Gateway, error: Exception, rule: str) -> Answer:
    """Return the answer to an error; log one that nobody raised on purpose.

    `rule` is the path of the route that raised it.
    """
    if isinstance(error, GatewayError):
        return _answer_gateway_error(gateway, error)
    if isinstance(error, HTTPException) and _is_clients(error):
        allowed = getattr(error, "valid_methods", None)
        answer = _answer_gateway_error(gateway, _translate(error), status=error.code)
        more = {"Allow": ", ".join(allowed)} if allowed else {}
        return attrs.evolve(answer, headers={**answer.headers, **more})
    _log.error("request.failed", exc_info=error, rule=rule)
    return _answer_gateway_error(gateway, GatewayError("Internal error"))


def _answer_gateway_error(
    gateway: Gateway, error: GatewayError, *, status: int | None = None
) -> Answer:
    """Return the answer to an error of ours; `status` is its own where None is given."""
    body = {"error": gateway.redactor.without_secrets(error.message)}
    if error.code is not None:
        body["code"] = error.code
    # An RPC endpoint's words may hold the operator's key: only the log and `gateway check` show
    # them.
    if error.details is not None and not isinstance(error, ChainUnavailable):
        body["details"] = gateway.redactor.clean(error.details)
    headers = dict(NOT_STORED)
    if isinstance(error, _LATER):
        headers["Retry-After"] = str(error.retry_after_s)
    return json_answer(body, status or error.status, headers)


def _is_clients(error: HTTPException) -> bool:
    """Whether an error that Quart raised is about the client's mistake."""
    return HTTPStatus.BAD_REQUEST <= (error.code or 0) < HTTPStatus.INTERNAL_SERVER_ERROR


def _translate(error: HTTPException) -> GatewayError:
    """Return our error for Quart's error about a client's mistake."""
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
