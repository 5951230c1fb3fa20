"""Headers that every answer carries, and the log line of each request."""

import random
import re
import time
from typing import Any

import structlog
from quart import Quart, Request, Response, g, request

from gateway.web.services import services

_PUBLIC = ("/api/", "/.well-known/", "/files/", "/llms.txt", "/sitemap.xml")
_READ_BY_US = (
    "Content-Type, X-PAYMENT, PAYMENT-SIGNATURE, Idempotency-Key, Access-Control-Expose-Headers, "
    "Range"
)
_READ_BY_THEM = (
    "PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE, Retry-After, X-Request-Id, "
    "Accept-Ranges, Content-Range, Content-Disposition, ETag"
)
_CORS = [
    ("Access-Control-Allow-Origin", "*"),
    ("Access-Control-Allow-Methods", "GET, POST, OPTIONS"),
    ("Access-Control-Allow-Headers", _READ_BY_US),
    (
        "Access-Control-Expose-Headers",
        _READ_BY_THEM,
    ),
    ("Access-Control-Max-Age", "86400"),
]
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_log = structlog.get_logger()


def register(app: Quart) -> None:
    """Put the headers on every answer."""
    app.before_request(_begin)
    app.after_request(_finish)


async def _begin() -> None:
    """Name the request; a proxy's own name for it is kept where it is a plain one."""
    given = request.headers.get("X-Request-Id", "")
    name = given if _REQUEST_ID.fullmatch(given) else f"{random.getrandbits(128):032x}"
    structlog.contextvars.bind_contextvars(request=name)
    g.request = (name, time.perf_counter())


async def _finish(response: Response) -> Response:
    proxy: Any = request
    asked: Request = proxy._get_current_object()  # noqa: SLF001 - each `request.` costs 1 µs
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
