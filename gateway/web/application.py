"""The Quart apps without the parts of a gateway: body limits, JSON, cookies, routes."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NoReturn, cast

import attrs
import msgspec
from quart import Quart, Request
from quart.json.provider import DefaultJSONProvider
from quart.sessions import SessionInterface, SessionMixin
from werkzeug.exceptions import BadHost, BadRequest

from gateway.catalog.catalog import Catalog
from gateway.concurrency.late_imports import import_in_turn
from gateway.contracts.parts import Mount
from gateway.settings import Settings
from gateway.telemetry.spans import About, Spans
from gateway.web.front import headers
from gateway.web.front.answers import WHOLE_ANSWER, answer_errors
from gateway.web.front.body_memory import SMALL_BODY_BYTES, BodyMemory, CountedBody
from gateway.web.front.current import address_of
from gateway.web.front.event_stream import EventConnection
from gateway.web.front.fast_path import FastPath
from gateway.web.front.mounts import Mounts
from gateway.web.front.routing import RouteTable, add_routes
from gateway.web.routes import discovery, files, generate, health, tasks
from gateway.web.routes.files import static_folder

_TABLE = RouteTable((*generate.ROUTES, *tasks.ROUTES, *health.ROUTES))
# A client that needs longer to send its body is cut off.
_BODY_S = 30
_Message = MutableMapping[str, Any]
_Send = Callable[[_Message], Awaitable[None]]
_Asgi = Callable[[_Message, Any, _Send], Awaitable[None]]
# Of a path, as a span shows it: what follows may be a task, a hash or a signed file.
_SHOWN_PARTS = 3


def make_app(settings: Settings, catalog: Catalog) -> Quart:
    """Return an app with the core's routes; they answer once the app has its `Gateway`."""
    memory = BodyMemory(settings.body_memory_mb * 10**6)

    def limit_of(method: str, path: str) -> int:
        found = _TABLE.find(method, path)
        return found[0].body_bytes(catalog, found[1]) if found else SMALL_BODY_BYTES

    app = _make_app(_request_class(settings, memory, limit_of))
    app.config.update(BODY_TIMEOUT=_BODY_S)
    add_routes(app, _TABLE.routes)
    for module in (files, discovery):
        app.register_blueprint(module.blueprint)

    def make_mounted(mount: Mount) -> Quart:
        return _make_mounted(app, mount, settings, memory)

    # Quart documents this as the place of ASGI middleware.
    app.asgi_app = Mounts(app, make_mounted)  # type: ignore[assignment, method-assign]
    app.asgi_app = FastPath(app, _TABLE, memory)  # type: ignore[assignment, method-assign]
    return app


def _make_mounted(app: Quart, mount: Mount, settings: Settings, memory: BodyMemory) -> Quart:
    """Return the app of a mount, which has what `app` has; imports the mount's blueprint."""
    module, _, function = mount.blueprint.partition(":")
    blueprint = getattr(import_in_turn(module), function)()

    def limit_of(method: str, path: str) -> int:  # noqa: ARG001 - as the core's
        return mount.body_bytes if method == "POST" else SMALL_BODY_BYTES

    mounted = _make_app(_request_class(settings, memory, limit_of))
    mounted.config, mounted.extensions = app.config, app.extensions
    mounted.register_blueprint(blueprint)
    return mounted


def _make_app(requests: type[Request]) -> Quart:
    """Return an app without routes."""
    app = _App("gateway", template_folder=str(static_folder()), static_folder=None)
    # `//` is an unknown path: Quart would answer with a redirect in HTML.
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
    """Quart with a JSON answer to a bad `Host` header, counted bodies and streams of events."""

    asgi_http_class = EventConnection

    def create_url_adapter(self, request: Any) -> Any:
        """Return the object that finds a request's route.

        Quart's own raises outside of the error handlers where `Host` is not a host name.
        """
        try:
            return super().create_url_adapter(request)
        except BadHost:
            return _NoHostAdapter()

    async def handle_request(self, request: Request) -> Any:
        """Answer a request and always give back the memory of its body."""
        try:
            return await super().handle_request(request)
        finally:
            cast(CountedBody, request.body).release()


class _NoHostAdapter:
    """Answers every path with an error."""

    def match(self, **_: Any) -> NoReturn:
        """Raise `BadRequest`."""
        raise BadRequest("The Host header is not a host name.")


class _Json(DefaultJSONProvider):
    """Compact JSON by msgspec, in the order of the specification."""

    def dumps(self, obj: Any, **kwargs: Any) -> str:  # noqa: ARG002 - Quart's
        """Return an answer's body."""
        return msgspec.json.encode(obj).decode()


class _NoSessions(SessionInterface):
    """Quart's sessions are not used: reading their cookie costs every request 12 µs."""

    async def open_session(self, app: Quart, request: Any) -> SessionMixin | None:  # noqa: ARG002 - Quart's
        """Return None: Quart then makes an empty session."""
        return None

    async def save_session(self, app: Quart, session: SessionMixin, response: Any) -> None:
        """Keep nothing."""


def _request_class(
    settings: Settings, memory: BodyMemory, limit_of: Callable[[str, str], int]
) -> type[Request]:
    """Return a request class that limits each body and counts its memory.

    `limit_of` returns the most bytes of a body by method and path.
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


@attrs.frozen
class TracedApp:
    """An ASGI app in front of another one."""

    behind: _Asgi
    spans: Spans

    async def __call__(self, scope: _Message, receive: Any, send: _Send) -> None:
        """Answer a request inside of its span."""
        if scope["type"] != "http":
            await self.behind(scope, receive, send)
            return
        path = "/".join(scope["path"].split("/")[:_SHOWN_PARTS])
        about: About = {"method": scope["method"], "path": path}

        async def note_and_send(message: _Message) -> None:
            if message["type"] == "http.response.start":
                about["status"] = message["status"]
                headers = {bytes(name).lower(): value for name, value in message["headers"]}
                about["request"] = bytes(headers.get(b"x-request-id", b"")).decode("latin1")
            await send(message)

        with self.spans.around("request", about):
            await self.behind(_without_whole_answers(scope), receive, note_and_send)


def _without_whole_answers(scope: _Message) -> _Message:
    """Return a copy of a scope whose answers all go by `send`, where their status is seen."""
    extensions = dict(scope.get("extensions") or {})
    extensions.pop(WHOLE_ANSWER, None)
    return {**scope, "extensions": extensions}
