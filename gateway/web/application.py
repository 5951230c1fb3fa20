"""Builds the Quart apps: the core's routes, and an app for each mount of a plugin."""

import asyncio
import functools
from collections.abc import Callable
from typing import Any, NoReturn, cast
from urllib.parse import urlparse

import attrs
import msgspec
from quart import Quart, Request
from quart.json.provider import DefaultJSONProvider
from quart.sessions import SessionInterface, SessionMixin
from werkzeug.exceptions import BadHost, BadRequest

from gateway.catalog.catalog import Catalog
from gateway.concurrency.awaiting import outlive
from gateway.concurrency.late_imports import import_in_turn
from gateway.contracts.parts import Mount
from gateway.running.gateway import Gateway
from gateway.settings import Settings
from gateway.telemetry.spans import About, Spans
from gateway.web.front import Asgi, Message, Receive, Send, headers
from gateway.web.front.answers import WHOLE_ANSWER, answer_error, answer_errors
from gateway.web.front.body_memory import SMALL_BODY_BYTES, BodyMemory, CountedBody
from gateway.web.front.current import EXTENSION, address_of
from gateway.web.front.event_stream import EventConnection
from gateway.web.front.fast_path import FastPath
from gateway.web.front.headers import begin_request, finish
from gateway.web.front.routing import RouteTable, add_routes
from gateway.web.routes import discovery, files, generate, health, tasks
from gateway.web.routes.files import static_folder

_TABLE = RouteTable((*generate.ROUTES, *tasks.ROUTES, *health.ROUTES))
# Time limit for a request body.
_BODY_S = 30
# Path segments that a span shows: later ones may be a task id, a hash or a signed file.
_SHOWN_PARTS = 3


def make_app(settings: Settings, catalog: Catalog) -> Quart:
    """Return an app with the core's routes, which answer once the app has its `Gateway`."""
    memory = BodyMemory(settings.body_memory_mb * 10**6)

    def limit_of(method: str, path: str) -> int:
        found = _TABLE.find(method, path)
        return found[0].body_bytes(catalog, found[1]) if found else SMALL_BODY_BYTES

    app = _make_app(_request_class(settings, memory, limit_of))
    app.config.update(BODY_TIMEOUT=_BODY_S)
    add_routes(app, _TABLE.routes)
    for module in (files, discovery):
        app.register_blueprint(module.blueprint)
    make_mounted = functools.partial(_make_mounted, app, settings, memory)
    # The documented way to add ASGI middleware to Quart.
    app.asgi_app = Mounts(app, make_mounted)  # type: ignore[assignment, method-assign]
    app.asgi_app = FastPath(app, _TABLE, memory)  # type: ignore[assignment, method-assign]
    return app


def _make_mounted(app: Quart, settings: Settings, memory: BodyMemory, mount: Mount) -> Quart:
    """Import the blueprint of a mount, and return an app that shares the state of `app`."""
    module, _, function = mount.blueprint.partition(":")
    blueprint = getattr(import_in_turn(module), function)()

    def limit_of(method: str, path: str) -> int:  # noqa: ARG001 - as the core's
        if method != "POST":
            return SMALL_BODY_BYTES
        return mount.body_bytes() if callable(mount.body_bytes) else mount.body_bytes

    mounted = _make_app(_request_class(settings, memory, limit_of))
    mounted.config, mounted.extensions = app.config, app.extensions
    mounted.register_blueprint(blueprint)
    return mounted


def _make_app(requests: type[Request]) -> Quart:
    app = _App("gateway", template_folder=str(static_folder()), static_folder=None)
    # Answer `//` as an unknown path; Quart would redirect in HTML.
    app.url_map.merge_slashes = False
    # Quart's types name its own class.
    app.session_interface = _NoSessions()  # type: ignore[assignment]
    app.request_class = requests
    app.response_class = files.FileResponse
    app.json = _Json(app)
    answer_errors(app)
    headers.register(app)
    return app


class _App(Quart):
    """Quart with event streams, counted bodies, and a JSON answer to a bad `Host` header."""

    asgi_http_class = EventConnection

    def create_url_adapter(self, request: Any) -> Any:
        """Match a request to a route.

        Quart raises outside its error handlers if `Host` is not a host name.
        """
        try:
            return super().create_url_adapter(request)
        except BadHost:
            return _NoHostAdapter()

    async def full_dispatch_request(self, request_context: Any = None) -> Any:
        """Answer a request; turn an exception that would end the process into an error.

        A plugin's route may raise `SystemExit`, or a cancellation that nobody asked for.
        """
        try:
            return await super().full_dispatch_request(request_context)
        except asyncio.CancelledError as error:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            raise RuntimeError("A route cancelled itself.") from error
        except (SystemExit, KeyboardInterrupt) as error:
            raise RuntimeError(f"A route raised {error!r}.") from error

    async def handle_request(self, request: Request) -> Any:
        """Answer a request and release the memory of its body."""
        try:
            return await super().handle_request(request)
        finally:
            cast(CountedBody, request.body).release()


class _NoHostAdapter:
    """Rejects every path."""

    def match(self, **_: Any) -> NoReturn:
        raise BadRequest("The Host header is not a host name.")


class _Json(DefaultJSONProvider):
    """Compact JSON by msgspec, with fields in the order of the specification."""

    def dumps(self, obj: Any, **kwargs: Any) -> str:  # noqa: ARG002 - Quart's
        return msgspec.json.encode(obj).decode()


class _NoSessions(SessionInterface):
    """Disables Quart's sessions, whose cookie costs each request 12 µs."""

    async def open_session(self, app: Quart, request: Any) -> SessionMixin | None:  # noqa: ARG002 - Quart's
        """Return None, so that Quart uses an empty session."""
        return None

    async def save_session(self, app: Quart, session: SessionMixin, response: Any) -> None:
        """Do nothing."""


def _request_class(
    settings: Settings, memory: BodyMemory, limit_of: Callable[[str, str], int]
) -> type[Request]:
    """Return a request class that limits each body and counts its memory.

    `limit_of` returns the maximum body size by method and path.
    """

    class LimitedRequest(Request):
        # Quart's types name its own class.
        body_class = CountedBody  # type: ignore[assignment]
        body: CountedBody  # type: ignore[assignment]

        def __init__(self, method: str, scheme: str, path: str, *args: Any, **more: Any) -> None:
            more["max_content_length"] = limit_of(method, path)
            super().__init__(method, scheme, path, *args, **more)
            self.body.memory = memory
            self.body.address_of = lambda: address_of(self.scope, settings.client_ip_header)

        async def get_data(self, *args: Any, **more: Any) -> Any:
            self.body.admit(self.content_length or 0)
            return await super().get_data(*args, **more)

    return LimitedRequest


@attrs.frozen(eq=False, repr=False)
class TracedApp:
    """ASGI middleware that opens a span for each request; used if a plugin asks for spans."""

    behind: Asgi
    spans: Spans

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request inside its span."""
        if scope["type"] != "http":
            await self.behind(scope, receive, send)
            return
        path = "/".join(scope["path"].split("/")[:_SHOWN_PARTS])
        about: About = {"method": scope["method"], "path": path}
        # A whole answer would bypass `note_and_send`.
        extensions = dict(scope.get("extensions") or {})
        extensions.pop(WHOLE_ANSWER, None)

        async def note_and_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                about["status"] = message["status"]
                headers = {bytes(name).lower(): value for name, value in message["headers"]}
                about["request"] = bytes(headers.get(b"x-request-id", b"")).decode("latin1")
            await send(message)

        with self.spans.around("request", about):
            await self.behind({**scope, "extensions": extensions}, receive, note_and_send)


class Mounts:
    """ASGI middleware that serves each mount by an app of its own, imported on first use.

    `make` imports a mount's blueprint in a thread and returns the app.
    """

    def __init__(self, app: Quart, make: Callable[[Mount], Quart]) -> None:
        self.behind = cast(Asgi, app.asgi_app)
        self._app = app
        self._make = make
        self._made: dict[Mount, Quart] = {}
        self._making: dict[Mount, asyncio.Task[Quart]] = {}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer requests for mounted paths, and pass all others on."""
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
        await cast(Asgi, app.asgi_app)(scope, receive, send)

    async def load(self, mount: Mount) -> Quart:
        """Return the app of a mount; errors of its import propagate.

        Concurrent requests share one import. After a failure, the next request tries again.
        """
        if mount in self._made:
            return self._made[mount]
        if mount not in self._making:
            loading = self._load(mount)
            self._making[mount] = asyncio.create_task(loading, name=f"import {mount.blueprint}")
        # The import continues if this client hangs up.
        return await outlive(self._making[mount])

    async def _load(self, mount: Mount) -> Quart:
        try:
            self._made[mount] = await asyncio.to_thread(_contain, self._make, mount)
        finally:
            del self._making[mount]
        return self._made[mount]

    async def _answer_error(
        self, gateway: Gateway, mount: Mount, error: Exception, scope: Message, send: Send
    ) -> None:
        headers = dict(scope["headers"])
        start = begin_request(headers.get(b"x-request-id", b"").decode("latin1"))
        answer = answer_error(gateway, error, mount.paths[0].removesuffix("/*"))
        timeout_s = self._app.config["RESPONSE_TIMEOUT"]
        await finish(gateway, start, answer, None, scope, send, timeout_s)


def _contain(make: Callable[[Mount], Quart], mount: Mount) -> Quart:
    """Call `make`; turn an exception that would end the process into an error."""
    try:
        return make(mount)
    except (SystemExit, KeyboardInterrupt, asyncio.CancelledError) as error:
        raise RuntimeError(f"The import of {mount.blueprint} raised {error!r}.") from error


def _path_of(scope: Message) -> str:
    """Return the path that Quart would match."""
    path: str = scope["path"]
    # As Quart does: the request target may be an absolute URL, and `//admin` is `/admin`.
    path = path if path.startswith("/") else urlparse(path).path
    return f"/{path.removeprefix(scope.get('root_path', '')).lstrip('/')}"
