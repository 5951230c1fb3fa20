"""Headers that every answer carries, and the log line of each request."""

import random
import re
import time
from typing import Any

import structlog
from quart import Quart, Request, Response, g, request

from gateway.web.services import services

# Paths that a page of any origin may ask.
_PUBLIC = ("/api/", "/.well-known/", "/files/", "/llms.txt", "/sitemap.xml")
_REQUEST_HEADERS = (
    "Content-Type, X-PAYMENT, PAYMENT-SIGNATURE, Idempotency-Key, Access-Control-Expose-Headers, "
    "Range"
)
_ANSWER_HEADERS = (
    "PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE, Retry-After, X-Request-Id, "
    "Accept-Ranges, Content-Range, Content-Disposition, ETag"
)
_CORS = [
    ("Access-Control-Allow-Origin", "*"),
    ("Access-Control-Allow-Methods", "GET, POST, OPTIONS"),
    ("Access-Control-Allow-Headers", _REQUEST_HEADERS),
    ("Access-Control-Expose-Headers", _ANSWER_HEADERS),
    ("Access-Control-Max-Age", "86400"),
]
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_log = structlog.get_logger()


def register(app: Quart) -> None:
    """Let the app put the headers on every answer, and log every request."""
    app.before_request(_name_request)
    app.after_request(_complete_answer)


async def _name_request() -> None:
    """Give the request an id; the proxy's `X-Request-Id` is kept if it is a plain one."""
    given = request.headers.get("X-Request-Id", "")
    name = given if _REQUEST_ID.fullmatch(given) else f"{random.getrandbits(128):032x}"
    structlog.contextvars.bind_contextvars(request=name)
    g.request = (name, time.perf_counter())


async def _complete_answer(response: Response) -> Response:
    """Add the headers and write the log line."""
    proxy: Any = request
    # Each access through Quart's proxy costs 1 µs, so the request is taken out of it once.
    asked: Request = proxy._get_current_object()  # noqa: SLF001 - werkzeug's documented method
    name, began = g.request
    gateway = services()
    gateway.answered.set()
    headers = [("X-Request-Id", name), ("X-Content-Type-Options", "nosniff")]
    if gateway.settings.is_https:
        headers.append(("Strict-Transport-Security", "max-age=31536000"))
    if asked.path.startswith(_PUBLIC):
        headers += _CORS
    response.headers.extend(headers)
    _log.info(
        "request",
        method=asked.method,
        rule=str(asked.url_rule) if asked.url_rule else None,
        status=response.status_code,
        ms=round((time.perf_counter() - began) * 1000, 1),
    )
    return response
