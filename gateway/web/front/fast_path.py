"""Answers the plain form of what is asked most in front of Quart: price, purchase, task, health.

It calls the functions that Quart's routes call, so it decides nothing by itself. A request with
anything unusual goes to Quart unread: it only takes longer there (docs/architecture.md).
"""

import contextlib
import functools
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, cast

from quart import Quart

from gateway.errors import NotFound
from gateway.running.gateway import Gateway
from gateway.web.front.answers import Answer, Send, send_answer
from gateway.web.front.body_memory import SMALL_BODY_BYTES, BodyMemory, HungUp, Receive
from gateway.web.front.clients import client_address, peer_of
from gateway.web.front.current import EXTENSION
from gateway.web.front.errors import answer_error
from gateway.web.front.headers import begin_request, end_request, own_headers, standing_headers
from gateway.web.front.plain_requests import (
    DirectPurchase,
    Health,
    Poll,
    Price,
    Purchase,
    Question,
    SmallBody,
    watched,
)
from gateway.web.routes import generate, health
from gateway.web.server.unread import OUTBOX, Outbox, UnreadMemory

_Scope = MutableMapping[str, Any]
_Asgi = Callable[[_Scope, Receive, Send], Awaitable[None]]
_Headers = Mapping[bytes, bytes]

_LABEL = rb"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = re.compile(rb"(?:%b\.){0,8}%b(?::[0-9]{1,5})?" % (_LABEL, _LABEL))
_TASK_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LENGTH = re.compile(rb"[0-9]{1,5}")
_WAIT = re.compile(rb"wait=([0-9]{1,3})")
# Headers by which a client asks for more than an answer.
_UNUSUAL = frozenset((b"transfer-encoding", b"content-encoding", b"expect", b"upgrade"))
_JSON = (None, b"application/json", b"application/json; charset=utf-8")
_X402_VERSIONS = {b"": 2, b"x402Version=1": 1, b"x402Version=2": 2}
_X402, _TASK = "/api/x402/", "/api/task/"


class FastPath:
    """An ASGI app in front of Quart's."""

    def __init__(self, app: Quart, memory: BodyMemory) -> None:
        # The ASGI app that takes every other request.
        self.behind = cast(_Asgi, app.asgi_app)
        self._app = app
        self._memory = memory
        self.unread = UnreadMemory()

    async def __call__(self, scope: _Scope, receive: Receive, send: Send) -> None:
        """Answer a plain request, and hand every other one to Quart."""
        # Missing before the start.
        gateway: Gateway | None = self._app.extensions.get(EXTENSION)
        headers = dict(scope.get("headers", ()))
        if gateway is None or scope["type"] != "http":
            await self.behind(scope, receive, send)
            return
        address = _address(gateway, scope, headers)
        outbox: Outbox | None = scope.get("extensions", {}).get(OUTBOX)
        if outbox is not None:
            outbox.belong_to(self.unread, address)
        question = self._read_head(gateway, scope, headers)
        if question is None:
            await self.behind(scope, receive, send)
            return
        begun = begin_request(headers.get(b"x-request-id", b"").decode("latin1"))
        try:
            answer = await _answer(gateway, question, address, receive)
        except HungUp:
            return
        standing = standing_headers(gateway, scope["path"], scope["method"])
        end_request(gateway, begun, scope["method"], question.rule, answer.status)
        timeout_s = self._app.config["RESPONSE_TIMEOUT"]
        sending = send_answer(answer, own_headers(begun), standing, scope, send, timeout_s)
        if answer.pieces is None:
            await sending
            return
        # The pieces for a client that has hung up would be read for nobody.
        with contextlib.suppress(HungUp):
            async with watched(receive):
                await sending

    def _read_head(self, gateway: Gateway, scope: _Scope, headers: _Headers) -> Question | None:
        """Return the question of a plain request; None where anything about it is unusual."""
        if not _is_plain(scope, headers):
            return None
        path, query = scope["path"], scope["query_string"]
        if scope["method"] == "POST":
            return self._read_post(gateway, path, query, headers)
        if scope["method"] != "GET" or headers.get(b"content-length", b"0") != b"0":
            return None
        if path == health.HEALTH_RULE and not query:
            return Health()
        wait = _WAIT.fullmatch(query or b"wait=0")
        task_id = path.removeprefix(_TASK)
        is_stream = b"event-stream" in headers.get(b"accept", b"").lower()
        if wait and task_id != path and _TASK_ID.fullmatch(task_id) and not is_stream:
            return Poll(task_id, wait[1].decode())
        return None

    def _read_post(
        self, gateway: Gateway, path: str, query: bytes, headers: _Headers
    ) -> Question | None:
        length = headers.get(b"content-length", b"0")
        is_small = _LENGTH.fullmatch(length) and int(length) <= SMALL_BODY_BYTES
        if not is_small or headers.get(b"content-type") not in _JSON:
            return None
        body = SmallBody(int(length), self._app.config["BODY_TIMEOUT"], self._memory)
        # Without a length the body may be as large as one with a file.
        if path == generate.DIRECT_RULE and not query and b"content-length" in headers:
            return DirectPurchase(_text_of(headers, b"idempotency-key"), body)
        if path.startswith(_X402):
            return _read_sale(gateway, path[len(_X402) :], query, headers, body)
        return None


def _read_sale(
    gateway: Gateway, slug: str, query: bytes, headers: _Headers, body: SmallBody
) -> Question | None:
    """Return the purchase that a payment header asks for; the question for the price without."""
    version = _X402_VERSIONS.get(query)
    try:
        registered = gateway.catalog[slug]
    except NotFound:
        return None
    if version is None or registered.endpoint.takes_file:
        return None
    key, methods = _text_of(headers, b"idempotency-key"), gateway.payments.methods
    if methods.header_names.isdisjoint(headers):
        return Price(registered, key, version, body)

    def read(name: str) -> str | None:
        return _text_of(headers, name.lower().encode())

    # A header such as `Authorization` may carry something else than a payment.
    return Purchase(registered, key, version, body, read) if methods.is_paid(read) else None


def _text_of(headers: _Headers, name: bytes) -> str | None:
    value = headers.get(name)
    return None if value is None else value.decode("latin1")


def _is_plain(scope: _Scope, headers: _Headers) -> bool:
    """Whether nothing about path and headers is unusual: none twice, no escapes, a host name."""
    return (
        not scope.get("root_path")
        and b"%" not in (scope.get("raw_path") or b"%")
        and len(headers) == len(scope["headers"])
        and _UNUSUAL.isdisjoint(headers)
        and _is_host(headers.get(b"host", b""))
    )


# Nearly all requests name the same one.
@functools.lru_cache(maxsize=32)
def _is_host(host: bytes) -> bool:
    return _HOST.fullmatch(host) is not None


def _address(gateway: Gateway, scope: _Scope, headers: _Headers) -> str:
    """Return what the client is counted by."""
    trusted = gateway.settings.client_ip_header.lower().encode()
    forwarded = headers.get(trusted, b"").decode("latin1") if trusted else None
    return client_address(peer_of(scope), forwarded)


async def _answer(gateway: Gateway, question: Question, address: str, receive: Receive) -> Answer:
    """Return the answer to a question, be it an error; raises `HungUp`."""
    try:
        if question.limit is not None:
            await gateway.limits.hit(question.limit, address)
        return await question.answer(gateway, address, receive)
    except HungUp:
        raise
    except Exception as error:  # noqa: BLE001 - as Quart: every error has an answer
        return answer_error(gateway, error, question.rule)
