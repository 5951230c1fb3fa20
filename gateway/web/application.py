"""The Quart apps without the parts of a gateway: body limits, JSON, cookies, routes."""

from pathlib import Path
from typing import Any, NoReturn, cast

import msgspec
from quart import Quart, Request
from quart.json.provider import DefaultJSONProvider
from quart.sessions import SessionInterface, SessionMixin
from werkzeug.exceptions import BadHost, BadRequest

from gateway.catalog.catalog import Catalog
from gateway.concurrency.late_imports import import_in_turn
from gateway.settings import Settings
from gateway.web.assets import Assets
from gateway.web.front import errors as error_answers
from gateway.web.front import headers
from gateway.web.front.body_memory import SMALL_BODY_BYTES, BodyMemory, CountedBody
from gateway.web.front.event_stream import EventConnection
from gateway.web.front.fast_path import FastPath
from gateway.web.operator_app import OperatorApp
from gateway.web.rate_limits import address_of
from gateway.web.routes import discovery, files, generate, health, tasks
from gateway_mcp import routes as mcp
from gateway_mcp import serves_mcp
from gateway_mcp.envelope import MESSAGE_BYTES
from gateway_shop import routes as pages

_ROUTES = (generate, tasks, files, discovery, pages, health)
# Imported when one of the operator's pages is first asked for.
_OPERATORS_PARTS, _OPERATORS_ROUTES = "gateway_operator.running", "gateway_operator.pages"
# A client that needs longer to send its body is cut off.
_BODY_S = 30


def bare_app(settings: Settings, catalog: Catalog) -> Quart:
    """Return an app with its routes; they answer once the app carries its `Services`."""
    memory = BodyMemory(settings.body_memory_mb * 10**6)
    requests = _request_class(settings, catalog, memory)
    app = _make_app(requests)
    app.config.update(BODY_TIMEOUT=_BODY_S)
    app.extensions[pages.ASSETS] = Assets(_static_folder() / "web")
    for module in _ROUTES:
        app.register_blueprint(module.blueprint)
    if serves_mcp(settings):
        app.register_blueprint(mcp.blueprint)
    # Quart documents this as the place of ASGI middleware.
    app.asgi_app = OperatorApp(app, lambda: _make_operator_app(app, requests))  # type: ignore[assignment, method-assign]
    app.asgi_app = FastPath(app, memory)  # type: ignore[assignment, method-assign]
    return app


def _make_operator_app(app: Quart, requests: type[Request]) -> Quart:
    """Return the app of the operator's pages, which carries what `app` carries."""
    import_in_turn(_OPERATORS_PARTS)
    routes = import_in_turn(_OPERATORS_ROUTES)
    operators = _make_app(requests)
    operators.config, operators.extensions = app.config, app.extensions
    routes.register(operators, _static_folder() / "admin")
    return operators


def _make_app(requests: type[Request]) -> Quart:
    """Return an app without routes."""
    app = _App("gateway", template_folder=str(_static_folder()), static_folder=None)
    # `//` is an unknown path: Quart would answer with a redirect in HTML.
    app.url_map.merge_slashes = False
    # Quart's types name its own class.
    app.session_interface = _NoSessions()  # type: ignore[assignment]
    app.request_class = requests
    app.response_class = files.FileResponse
    app.json = _Json(app)
    error_answers.register(app)
    headers.register(app)
    return app


def _static_folder() -> Path:
    """Return the folder of llms.txt and the pages: inside the wheel, or a checkout's top level."""
    inside = Path(__file__).parent / "static"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "static"


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


def _request_class(settings: Settings, catalog: Catalog, memory: BodyMemory) -> type[Request]:
    """Return a request class that limits each body by its route and counts its memory."""
    file_paths = {f"/api/x402/{endpoint.slug}" for endpoint in catalog if endpoint.takes_file}

    class LimitedRequest(Request):
        # Quart's types name its own class.
        body_class = CountedBody  # type: ignore[assignment]
        body: CountedBody  # type: ignore[assignment]

        def __init__(self, method: str, scheme: str, path: str, *args: Any, **more: Any) -> None:
            more["max_content_length"] = _max_body_bytes(method, path, file_paths)
            super().__init__(method, scheme, path, *args, **more)
            self.body.memory = memory
            self.body.address_of = lambda: address_of(self, settings.client_ip_header)

        async def get_data(self, *args: Any, **more: Any) -> Any:
            self.body.admit(self.content_length or 0)
            return await super().get_data(*args, **more)

    return LimitedRequest


def _max_body_bytes(method: str, path: str, file_paths: set[str]) -> int:
    """Return the most bytes a body may have: large ones are for the routes that take files."""
    if method != "POST":
        return SMALL_BODY_BYTES
    if path.removesuffix("/") == mcp.MCP_RULE:
        return generate.LARGE_BODY_BYTES if file_paths else MESSAGE_BYTES
    if path == generate.DIRECT_RULE or path in file_paths:
        return generate.LARGE_BODY_BYTES
    return generate.ESCAPED_BODY_BYTES if path.startswith("/api/x402/") else SMALL_BODY_BYTES
