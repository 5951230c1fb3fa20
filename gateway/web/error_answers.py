"""The one place where errors become JSON (spec §2.6)."""

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
    """Answer every error in the specification's shape."""
    app.register_error_handler(GatewayError, _gateway_error)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(Exception, _unexpected)


async def _gateway_error(error: GatewayError) -> Answer:
    redactor = services().redactor
    body: dict[str, Any] = {"error": redactor.without_secrets(error.message)}
    if error.code is not None:
        body["code"] = error.code
    # What an RPC endpoint says may hold the operator's key: it is for the log and `gateway check`.
    if error.details is not None and not isinstance(error, ChainUnavailable):
        body["details"] = redactor.clean(error.details)
    headers = {"Cache-Control": "no-store"}
    if isinstance(error, TooManyRequests | BodiesFull):
        headers["Retry-After"] = str(error.retry_after_s)
    return body, error.status, headers


async def _http_error(error: HTTPException) -> Answer:
    """Translate what Quart raises by itself."""
    translated: dict[int, GatewayError] = {
        404: NotFound("No such path. GET /llms.txt describes this service."),
        # Not the method: beside a text without secrets it would tell who guesses whether it is one.
        405: MethodNotAllowed("This method is not possible here."),
        413: PayloadTooLarge("The body is too large."),
    }
    status = error.code or 500
    if status in translated:
        answer = await _gateway_error(translated[status])
        allowed = getattr(error, "valid_methods", None)
        return (*answer[:2], answer[2] | ({"Allow": ", ".join(allowed)} if allowed else {}))
    if 400 <= status < 500:  # noqa: PLR2004 - the client's own mistakes
        body, _, headers = await _gateway_error(
            ValidationError(error.description or "Bad request.")
        )
        return body, status, headers
    return await _unexpected(error)


async def _unexpected(error: Exception) -> Answer:
    _log.error("request.failed", exc_info=error, rule=str(request.url_rule))
    return await _gateway_error(GatewayError("Internal error"))
