"""Answers the plain form of the most frequent requests in front of Quart: price, task, health.

It calls the functions that Quart's routes call, so it decides nothing by itself. A request with
anything unusual goes to Quart unread: it only takes longer there (docs/architecture.md).
"""

import asyncio
import contextlib
import re
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Mapping,
    MutableMapping,
)
from typing import Any, ClassVar, Protocol, cast

import attrs
from quart import Quart

from gateway.eager_start import EagerStart
from gateway.errors import NotFound
from gateway.plugins.catalog import Registered
from gateway.web.answers import Answer, Send, send_answer
from gateway.web.body_memory import SMALL_BODY_BYTES, BodyMemory, CountedBody, HungUp, Receive
from gateway.web.error_answers import answer_error
from gateway.web.headers import begin_request, end_request, own_headers, standing_headers
from gateway.web.rate_limits import client_address, peer_of
from gateway.web.routes import generate, health, tasks
from gateway.web.services import EXTENSION, Services

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
# A client that hangs up is looked for only after so long: most checks take less.
_UNWATCHED_S = 0.02


class _Question(Protocol):
    """A plain request, read from its head."""

    # The route's path, and the limit that the request counts against.
    rule: ClassVar[str]
    limit: ClassVar[str | None]

    async def answer(self, gateway: Services, address: str, receive: Receive) -> Answer:
        """Return the answer; raises what the routes raise, and `HungUp`."""
        ...


@attrs.frozen
class _Health:
    """`GET /api/health`."""

    rule: ClassVar[str] = health.HEALTH_RULE
    limit: ClassVar[str | None] = None

    async def answer(self, gateway: Services, address: str, receive: Receive) -> Answer:  # noqa: ARG002 - _Question
        return await _while_connected(receive, health.answer_health(gateway))


@attrs.frozen
class _Poll:
    """`GET /api/task/{id}`, with `?wait=` or without."""

    rule: ClassVar[str] = tasks.TASK_RULE
    limit: ClassVar[str | None] = tasks.TASK_LIMIT
    task_id: str
    wait: str

    async def answer(self, gateway: Services, address: str, receive: Receive) -> Answer:
        wait_s = tasks.read_wait_s(self.wait)
        work = tasks.answer_task(gateway, self.task_id, wait_s, address)
        return await _while_connected(receive, work)


@attrs.frozen
class _Price:
    """`POST /api/x402/{slug}` without a payment and with a small body, or with none."""

    rule: ClassVar[str] = generate.X402_RULE
    limit: ClassVar[str | None] = generate.PRICE_LIMIT
    registered: Registered
    key: str | None
    version: int
    length: int
    body_s: float
    memory: BodyMemory

    async def answer(self, gateway: Services, address: str, receive: Receive) -> Answer:
        first = EagerStart(receive())
        data = _whole_body(first)
        if data is None or not self.memory.has_room(address, len(data)):
            return await self._answer_counted(gateway, address, _receive_again(first, receive))
        work = EagerStart(self._ask(gateway, data))
        # Nothing has waited, so the body took its room alone.
        if work.is_done:
            return work.result
        with self.memory.held(address, len(data)):
            # A file would be in memory twice while its pages are counted.
            del first, data
            async with _watched(receive):
                return await work

    async def _answer_counted(self, gateway: Services, address: str, receive: Receive) -> Answer:
        """Answer where the body is still arriving, or others may have to give way to it."""
        body = CountedBody(self.length, generate.ESCAPED_BODY_BYTES)
        body.memory, body.address_of = self.memory, lambda: address
        try:
            body.admit(self.length)
            data = await body.read_from(receive, self.body_s)
            work = self._ask(gateway, data)
            del data
            return await _while_connected(receive, work)
        finally:
            body.release()

    def _ask(self, gateway: Services, data: bytes) -> Coroutine[Any, Any, Answer]:
        return generate.answer_unpaid(gateway, self.registered, data, self.key, self.version)


def _whole_body(first: EagerStart[MutableMapping[str, Any]]) -> bytes | None:
    """Return the body where it came with the head and is small, as nearly all do; else None."""
    if not first.is_done or first.result["type"] != "http.request":
        return None
    data: bytes = first.result.get("body", b"")
    return None if first.result.get("more_body") or len(data) > SMALL_BODY_BYTES else data


def _receive_again(first: EagerStart[MutableMapping[str, Any]], receive: Receive) -> Receive:
    """Return a `receive` that gives the message that was asked for already, then the others."""
    asked: list[EagerStart[MutableMapping[str, Any]]] = [first]

    async def give() -> MutableMapping[str, Any]:
        return await (asked.pop() if asked else receive())

    return give


class FastPath:
    """An ASGI app in front of Quart's."""

    def __init__(self, app: Quart, memory: BodyMemory) -> None:
        # The ASGI app that takes every other request.
        self.behind = cast(_Asgi, app.asgi_app)
        self._app = app
        self._memory = memory

    async def __call__(self, scope: _Scope, receive: Receive, send: Send) -> None:
        """Answer a plain request, and hand every other one to Quart."""
        # Missing before the start.
        gateway: Services | None = self._app.extensions.get(EXTENSION)
        headers = dict(scope.get("headers", ()))
        question = None if gateway is None else self._read_head(gateway, scope, headers)
        if gateway is None or question is None:
            await self.behind(scope, receive, send)
            return
        begun = begin_request(headers.get(b"x-request-id", b"").decode("latin1"))
        try:
            answer = await _answer(gateway, question, _address(gateway, scope, headers), receive)
        except HungUp:
            return
        standing = standing_headers(gateway, scope["path"])
        end_request(gateway, begun, scope["method"], question.rule, answer.status)
        timeout_s = self._app.config["RESPONSE_TIMEOUT"]
        await send_answer(answer, own_headers(begun), standing, scope, send, timeout_s)

    def _read_head(self, gateway: Services, scope: _Scope, headers: _Headers) -> _Question | None:
        """Return the question of a plain request; None where anything about it is unusual."""
        if not _is_plain(scope, headers):
            return None
        path, query = scope["path"], scope["query_string"]
        if scope["method"] == "POST" and path.startswith(_X402):
            return self._read_price(gateway, path[len(_X402) :], query, headers)
        if scope["method"] != "GET" or headers.get(b"content-length", b"0") != b"0":
            return None
        if path == health.HEALTH_RULE and not query:
            return _Health()
        wait = _WAIT.fullmatch(query or b"wait=0")
        task_id = path.removeprefix(_TASK)
        is_stream = b"event-stream" in headers.get(b"accept", b"").lower()
        if wait and task_id != path and _TASK_ID.fullmatch(task_id) and not is_stream:
            return _Poll(task_id, wait[1].decode())
        return None

    def _read_price(
        self, gateway: Services, slug: str, query: bytes, headers: _Headers
    ) -> _Price | None:
        payments = gateway.payments.methods.header_names
        if not payments.isdisjoint(headers) or headers.get(b"content-type") not in _JSON:
            return None
        version, length = _X402_VERSIONS.get(query), headers.get(b"content-length", b"0")
        is_small = _LENGTH.fullmatch(length) and int(length) <= SMALL_BODY_BYTES
        try:
            registered = gateway.catalog[slug]
        except NotFound:
            return None
        if version is None or not is_small or registered.endpoint.takes_file:
            return None
        key = headers.get(b"idempotency-key")
        text = None if key is None else key.decode("latin1")
        body_s = self._app.config["BODY_TIMEOUT"]
        return _Price(registered, text, version, int(length), body_s, self._memory)


def _is_plain(scope: _Scope, headers: _Headers) -> bool:
    """Whether nothing about path and headers is unusual: none twice, no escapes, a host name."""
    return (
        scope["type"] == "http"
        and not scope.get("root_path")
        and b"%" not in (scope.get("raw_path") or b"%")
        and len(headers) == len(scope["headers"])
        and _UNUSUAL.isdisjoint(headers)
        and _HOST.fullmatch(headers.get(b"host", b"")) is not None
    )


def _address(gateway: Services, scope: _Scope, headers: _Headers) -> str:
    """Return what the client is counted by."""
    trusted = gateway.settings.client_ip_header.lower().encode()
    forwarded = headers.get(trusted, b"") if trusted else b""
    return client_address(peer_of(scope), forwarded.decode("latin1"))


async def _answer(gateway: Services, question: _Question, address: str, receive: Receive) -> Answer:
    """Return the answer to a question, be it an error; raises `HungUp`."""
    try:
        if question.limit is not None:
            await gateway.limits.hit(question.limit, address)
        return await question.answer(gateway, address, receive)
    except HungUp:
        raise
    except Exception as error:  # noqa: BLE001 - as Quart: every error has an answer
        return answer_error(gateway, error, question.rule)


async def _while_connected(receive: Receive, work: Coroutine[Any, Any, Answer]) -> Answer:
    """Return the answer; cancel the work and raise `HungUp` where the client hangs up before it."""
    begun = EagerStart(work)
    if begun.is_done:
        return begun.result
    async with _watched(receive):
        return await begun


@contextlib.asynccontextmanager
async def _watched(receive: Receive) -> AsyncIterator[None]:
    """Cancel the block and raise `HungUp` where the client hangs up before its end."""
    watching: list[asyncio.Task[None]] = []
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(None) as block:
            timer = loop.call_later(
                _UNWATCHED_S, lambda: watching.append(loop.create_task(_watch(receive, block)))
            )
            try:
                yield
            finally:
                timer.cancel()
                for task in watching:
                    task.cancel()
    except TimeoutError:
        if block.expired():
            raise HungUp from None
        raise


async def _watch(receive: Receive, block: asyncio.Timeout) -> None:
    """End the block once the client hangs up."""
    while (await receive())["type"] != "http.disconnect":
        pass
    block.reschedule(0)
