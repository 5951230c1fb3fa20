"""Hands what is under `/admin` to an app of its own, which is imported when it is first asked for.

Most processes of a gateway are never asked for these pages (docs/architecture.md).
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, cast
from urllib.parse import urlparse

from quart import Quart

from gateway.concurrency.outliving import outlive
from gateway.web.front.answers import Send, send_answer
from gateway.web.front.body_memory import Receive
from gateway.web.front.errors import answer_error
from gateway.web.front.headers import begin_request, end_request, own_headers, standing_headers
from gateway.web.services import EXTENSION, Services

_Scope = MutableMapping[str, Any]
_Asgi = Callable[[_Scope, Receive, Send], Awaitable[None]]
_ROOT = "/admin"


class OperatorApp:
    """An ASGI app in front of Quart's.

    `make` imports and returns the app with the operator's pages. It is called in a thread.
    """

    def __init__(self, app: Quart, make: Callable[[], Quart]) -> None:
        # Quart's own ASGI app.
        self.behind = cast(_Asgi, app.asgi_app)
        self._app = app
        self._make = make
        self._made: Quart | None = None
        self._making: asyncio.Task[Quart] | None = None

    async def __call__(self, scope: _Scope, receive: Receive, send: Send) -> None:
        """Answer a request for one of the operator's pages, and hand every other one to Quart."""
        # Missing before the start.
        gateway: Services | None = self._app.extensions.get(EXTENSION)
        if gateway is None or scope["type"] != "http" or not _is_operators(scope):
            await self.behind(scope, receive, send)
            return
        try:
            app = await self.load()
        except Exception as error:  # noqa: BLE001 - as Quart: every error has an answer
            await self._answer_error(gateway, error, scope, send)
            return
        await cast(_Asgi, app.asgi_app)(scope, receive, send)

    async def load(self) -> Quart:
        """Return the app with the operator's pages; raises what its imports raise.

        Requests that come meanwhile wait for the same attempt. After a failed one, the next request
        makes another.
        """
        if self._made is not None:
            return self._made
        if self._making is None:
            self._making = asyncio.create_task(self._load(), name="operator-app")
        # The attempt goes on without a client that hangs up.
        return await outlive(self._making)

    async def _load(self) -> Quart:
        try:
            self._made = await asyncio.to_thread(self._make)
        finally:
            self._making = None
        return self._made

    async def _answer_error(
        self, gateway: Services, error: Exception, scope: _Scope, send: Send
    ) -> None:
        headers = dict(scope["headers"])
        begun = begin_request(headers.get(b"x-request-id", b"").decode("latin1"))
        answer = answer_error(gateway, error, _ROOT)
        standing = standing_headers(gateway, scope["path"], scope["method"])
        end_request(gateway, begun, scope["method"], None, answer.status)
        timeout_s = self._app.config["RESPONSE_TIMEOUT"]
        await send_answer(answer, own_headers(begun), standing, scope, send, timeout_s)


def _is_operators(scope: _Scope) -> bool:
    """Whether Quart finds the path under `/admin`."""
    path: str = scope["path"]
    # As Quart does: a request line may name a whole address, and `//admin` is `/admin`.
    path = path if path.startswith("/") else urlparse(path).path
    path = f"/{path.removeprefix(scope.get('root_path', '')).lstrip('/')}"
    return path == _ROOT or path.startswith(f"{_ROOT}/")
