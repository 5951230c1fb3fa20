"""Answers the paths of parts by apps of their own, imported with the first request."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, cast
from urllib.parse import urlparse

from quart import Quart

from gateway.concurrency.awaiting import outlive
from gateway.contracts.parts import Mount
from gateway.running.gateway import Gateway
from gateway.web.front.answers import Send, answer_error, send_answer
from gateway.web.front.body_memory import Receive
from gateway.web.front.current import EXTENSION, address_of
from gateway.web.front.headers import begin_request, end_request, own_headers, standing_headers

_Scope = MutableMapping[str, Any]
_Asgi = Callable[[_Scope, Receive, Send], Awaitable[None]]


class Mounts:
    """ASGI middleware in front of the app with the core's routes.

    `make` imports a mount's blueprint and returns an app with it. It is called in a thread.
    """

    def __init__(self, app: Quart, make: Callable[[Mount], Quart]) -> None:
        # The ASGI app of the core's routes.
        self.behind = cast(_Asgi, app.asgi_app)
        self._app = app
        self._make = make
        self._made: dict[Mount, Quart] = {}
        self._making: dict[Mount, asyncio.Task[Quart]] = {}

    async def __call__(self, scope: _Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a mounted path, and pass every other one on."""
        # Missing before the start.
        gateway: Gateway | None = self._app.extensions.get(EXTENSION)
        mount = None
        if gateway is not None and scope["type"] == "http":
            mount = gateway.lifecycle.find_mount(_path_of(scope))
        if gateway is None or mount is None:
            await self.behind(scope, receive, send)
            return
        try:
            if mount.limit:
                client = address_of(scope, gateway.settings.client_ip_header)
                await gateway.limits.hit(mount.limit_name, client)
            app = await self.load(mount)
        except Exception as error:  # noqa: BLE001 - as Quart: every error has an answer
            await self._answer_error(gateway, mount, error, scope, send)
            return
        await cast(_Asgi, app.asgi_app)(scope, receive, send)

    async def load(self, mount: Mount) -> Quart:
        """Return the app of a mount; raises what its imports raise.

        Requests that come meanwhile wait for the same attempt. After a failed one, the next request
        makes another.
        """
        if mount in self._made:
            return self._made[mount]
        if mount not in self._making:
            loading = self._load(mount)
            self._making[mount] = asyncio.create_task(loading, name=f"import {mount.blueprint}")
        # The attempt goes on without a client that hangs up.
        return await outlive(self._making[mount])

    async def _load(self, mount: Mount) -> Quart:
        try:
            self._made[mount] = await asyncio.to_thread(self._make, mount)
        finally:
            del self._making[mount]
        return self._made[mount]

    async def _answer_error(
        self, gateway: Gateway, mount: Mount, error: Exception, scope: _Scope, send: Send
    ) -> None:
        headers = dict(scope["headers"])
        begun = begin_request(headers.get(b"x-request-id", b"").decode("latin1"))
        answer = answer_error(gateway, error, mount.paths[0].removesuffix("/*"))
        standing = standing_headers(gateway, scope["path"], scope["method"])
        end_request(gateway, begun, scope["method"], None, answer.status)
        timeout_s = self._app.config["RESPONSE_TIMEOUT"]
        await send_answer(answer, own_headers(begun), standing, scope, send, timeout_s)


def _path_of(scope: _Scope) -> str:
    """Return the path by which Quart finds a route."""
    path: str = scope["path"]
    # As Quart does: a request line may contain a whole address, and `//admin` is `/admin`.
    path = path if path.startswith("/") else urlparse(path).path
    return f"/{path.removeprefix(scope.get('root_path', '')).lstrip('/')}"
