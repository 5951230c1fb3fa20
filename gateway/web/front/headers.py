"""Headers of every answer, and the log line of each request."""

import functools
import random
import re
import time
from typing import Any

import attrs
import structlog
from quart import Quart, Request, Response, g, request

from gateway.running.gateway import Gateway
from gateway.telemetry import signals
from gateway.telemetry.redaction import hide_prompt
from gateway.telemetry.request_lines import log_request
from gateway.web.front import Message, Send
from gateway.web.front.answers import LAST, Answer, send_answer
from gateway.web.front.current import current_gateway

# Paths with CORS for any origin.
_PUBLIC = ("/api/", "/.well-known/", "/files/", "/llms.txt", "/sitemap.xml", "/favicon.ico")
# Entry points of agents, which link to the other documents (RFC 8288, RFC 8631).
_OPENED_FIRST = ("/", "/llms.txt", "/.well-known/agent-manifest.json")
_REQUEST_HEADERS = (
    "Content-Type, X-PAYMENT, PAYMENT-SIGNATURE, Idempotency-Key, Access-Control-Expose-Headers, "
    "Range, MCP-Protocol-Version, Mcp-Method, Mcp-Name"
)
_ANSWER_HEADERS = (
    "PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE, Retry-After, X-Request-Id, "
    "Accept-Ranges, Content-Range, Content-Disposition, ETag, Link"
)
_CORS = (("Access-Control-Allow-Origin", "*"), ("Access-Control-Expose-Headers", _ANSWER_HEADERS))
# A browser reads these in the answer to a preflight only.
_PREFLIGHT = (
    ("Access-Control-Allow-Methods", "GET, POST, OPTIONS"),
    ("Access-Control-Allow-Headers", _REQUEST_HEADERS),
    ("Access-Control-Max-Age", "86400"),
)
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


@attrs.frozen(eq=False, repr=False)
class RequestStart:
    """A request in progress: its id, its start (`time.perf_counter`), and the id's origin.

    A given id comes from the proxy; the gateway generates all others.
    """

    name: str
    at_s: float
    is_given: bool


def register(app: Quart) -> None:
    """Add the headers to every answer of an app, and log every request."""
    app.before_request(_begin_request)
    app.after_request(_complete_answer)


async def _begin_request() -> None:
    g.request = begin_request(request.headers.get("X-Request-Id", ""))


async def _complete_answer(response: Response) -> Response:
    proxy: Any = request
    # Each access through Quart's proxy costs 1 µs.
    asked: Request = proxy._get_current_object()  # noqa: SLF001 - werkzeug's documented method
    rule = str(asked.url_rule) if asked.url_rule else None
    response.headers.extend(own_headers(g.request))
    response.headers.extend(shared_headers(current_gateway(), asked.path, asked.method))
    end_request(current_gateway(), g.request, asked.method, rule, response.status_code)
    return response


def begin_request(given: str) -> RequestStart:
    """Bind a request id for log lines.

    `given` is the proxy's `X-Request-Id`; it is used if it is well-formed.
    """
    is_given = _REQUEST_ID.fullmatch(given) is not None
    name = given if is_given else f"{random.getrandbits(128):032x}"
    structlog.contextvars.bind_contextvars(request=name)
    # uvicorn starts a pipelined request in the context of the previous one.
    hide_prompt(None)
    return RequestStart(name, time.perf_counter(), is_given)


def own_headers(start: RequestStart) -> list[tuple[str, str]]:
    """Return the headers of this answer alone."""
    return [("X-Request-Id", start.name)]


def shared_headers(gateway: Gateway, path: str, method: str) -> tuple[tuple[str, str], ...]:
    """Return the headers of every answer to this path and method."""
    methods, links = gateway.payments.methods, ""
    if path in _OPENED_FIRST:
        api = f'<{gateway.openapi}>; rel="service-desc", ' if gateway.openapi else ""
        links = f'{api}</llms.txt>; rel="describedby"'
    is_public = path.startswith(_PUBLIC)
    if not is_public:
        mount = gateway.lifecycle.find_mount(path)
        is_public = mount is not None and mount.is_public
    return _make_shared_headers(
        is_https=gateway.settings.is_https,
        links=links,
        is_public=is_public,
        is_preflight=is_public and method == "OPTIONS",
        is_last=gateway.readiness.is_draining,
        asked=methods.further_request_headers,
        answered=methods.further_answer_headers,
    )


# There are only a few combinations.
@functools.cache
def _make_shared_headers(
    *,
    is_https: bool,
    links: str,
    is_public: bool,
    is_preflight: bool,
    is_last: bool,
    asked: tuple[str, ...],
    answered: tuple[str, ...],
) -> tuple[tuple[str, str], ...]:
    headers = [("X-Content-Type-Options", "nosniff")]
    if is_https:
        headers.append(("Strict-Transport-Security", "max-age=31536000"))
    if links:
        headers.append(("Link", links))
    if is_last:
        # Otherwise a proxy would send the next request on a connection that shutdown closes.
        headers.append(LAST)
    # Browsers join repeated headers to one list.
    if is_public:
        headers += _CORS
        if answered:
            headers.append(("Access-Control-Expose-Headers", ", ".join(answered)))
    if is_preflight:
        headers += _PREFLIGHT
        if asked:
            headers.append(("Access-Control-Allow-Headers", ", ".join(asked)))
    return tuple(headers)


def end_request(
    gateway: Gateway, start: RequestStart, method: str, rule: str | None, status: int
) -> None:
    """Write the request's log line; `rule` is the route's path, or None without a route."""
    gateway.lifecycle.answered.set()
    seconds = time.perf_counter() - start.at_s
    signals.request_answered.send(rule=rule, status=status, seconds=seconds)
    given = None if start.is_given else start.name
    log_request(method, rule, status, round(seconds * 1000, 1), given)


async def finish(
    gateway: Gateway,
    start: RequestStart,
    answer: Answer,
    rule: str | None,
    scope: Message,
    send: Send,
    timeout_s: float,
) -> None:
    """Log a request and send its answer, without Quart."""
    shared = shared_headers(gateway, scope["path"], scope["method"])
    end_request(gateway, start, scope["method"], rule, answer.status)
    await send_answer(answer, own_headers(start), shared, scope, send, timeout_s)
