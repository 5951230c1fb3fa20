"""Turns errors into JSON answers (spec §2.6); no other module does."""

from http import HTTPStatus

import attrs
import structlog
from quart import Quart, Response, request
from werkzeug.exceptions import HTTPException

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
from gateway.web.front.answers import NOT_STORED, Answer, json_answer
from gateway.web.front.current import current_gateway

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


def register(app: Quart) -> None:
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
