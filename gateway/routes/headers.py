"""Headers that every answer carries, and the log line of each request."""

import re
import time
import uuid

import structlog
from quart import Quart, Response, g, request

from gateway.services import services

_PUBLIC = ("/api/", "/.well-known/", "/files/", "/llms.txt", "/sitemap.xml")
_CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET, POST, OPTIONS",
    "Access-Control-Allow-Headers": "Content-Type, X-PAYMENT, PAYMENT-SIGNATURE, "
    "Idempotency-Key, Access-Control-Expose-Headers",
    "Access-Control-Expose-Headers": "PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE, "
    "Retry-After, X-Request-Id",
    "Access-Control-Max-Age": "86400",
}
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_log = structlog.get_logger()


def register(app: Quart) -> None:
    """Put the headers on every answer."""
    app.before_request(_begin)
    app.after_request(_finish)


async def _begin() -> None:
    """Name the request; a proxy's own name for it is kept where it is a plain one."""
    given = request.headers.get("X-Request-Id", "")
    g.request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
    g.began = time.perf_counter()
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(request=g.request_id)


async def _finish(response: Response) -> Response:
    settings = services().settings
    services().answered.set()
    headers = response.headers
    headers["X-Request-Id"] = g.request_id
    headers["X-Content-Type-Options"] = "nosniff"
    if settings.is_https:
        headers["Strict-Transport-Security"] = "max-age=31536000"
    if request.path.startswith(_PUBLIC):
        headers.update(_CORS)
    _log.info(
        "request",
        method=request.method,
        rule=str(request.url_rule) if request.url_rule else None,
        status=response.status_code,
        ms=round((time.perf_counter() - g.began) * 1000, 1),
    )
    return response
