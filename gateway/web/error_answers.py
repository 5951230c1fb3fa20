"""Turns errors into JSON answers (spec §2.6); no other module does."""

from http import HTTPStatus
from typing import Any

import structlog
from quart import Quart, request
from werkzeug.exceptions import HTTPException

from gateway.errors import (
    BodiesFull,
    ChainUnavailable,
    GatewayError,
    MethodNotAllowed,
    NotFound,
    PayloadTooLarge,
    TooManyRequests,
    ValidationError,
)
from gateway.web.services import services

_log = structlog.get_logger()
Answer = tuple[dict[str, Any], int, dict[str, str]]


def register(app: Quart) -> None:
    """Let the app answer every error in the specification's shape."""
    app.register_error_handler(GatewayError, _answer_gateway_error)
    app.register_error_handler(HTTPException, _answer_http_error)
    app.register_error_handler(Exception, _answer_unexpected_error)


async def _answer_gateway_error(error: GatewayError) -> Answer:
    redactor = services().redactor
    body: dict[str, Any] = {"error": redactor.without_secrets(error.message)}
    if error.code is not None:
        body["code"] = error.code
    # An RPC endpoint's words may hold the operator's key: only the log and `gateway check` show
    # them.
    if error.details is not None and not isinstance(error, ChainUnavailable):
        body["details"] = redactor.clean(error.details)
    headers = {"Cache-Control": "no-store"}
    if isinstance(error, TooManyRequests | BodiesFull):
        headers["Retry-After"] = str(error.retry_after_s)
    return body, error.status, headers


async def _answer_http_error(error: HTTPException) -> Answer:
    """Answer an error that Quart raised."""
    status = error.code or HTTPStatus.INTERNAL_SERVER_ERROR
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status < HTTPStatus.BAD_REQUEST:
        return await _answer_unexpected_error(error)
    body, _, headers = await _answer_gateway_error(_translate(error))
    allowed = getattr(error, "valid_methods", None)
    if allowed:
        headers["Allow"] = ", ".join(allowed)
    return body, status, headers


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


async def _answer_unexpected_error(error: Exception) -> Answer:
    _log.error("request.failed", exc_info=error, rule=str(request.url_rule))
    return await _answer_gateway_error(GatewayError("Internal error"))
