"""The bare Quart app: what it reads, how it writes, its cookies and its routes; no parts yet."""

from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn, cast

import msgspec
from quart import Quart, Request
from quart.json.provider import DefaultJSONProvider
from quart.sessions import SecureCookieSessionInterface
from werkzeug.exceptions import BadHost, BadRequest

from gateway.plugins.catalog import Catalog
from gateway.settings import Settings
from gateway.web import routes
from gateway.web.body_memory import SMALL_BODY_BYTES, BodyMemory, CountedBody
from gateway.web.limited import address_of
from gateway.web.routes.admin import SESSION_S
from gateway.web.routes.files import FileResponse
from gateway.web.routes.generate import ESCAPED_BODY_BYTES, LARGE_BODY_BYTES

_BODY_S = 30  # a client slower than this with its body is cut off


def static_folder() -> Path:
    """Return where llms.txt and the pages are: in the wheel inside, in a checkout beside us."""
    inside = Path(__file__).parent / "static"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "static"


def bare_app(settings: Settings, catalog: Catalog) -> Quart:
    """Return the bare app: its limits, its cookies, its routes."""
    app = _App("gateway", template_folder=str(static_folder()), static_folder=None)
    app.url_map.merge_slashes = False  # `//` is an unknown path, not a redirect in HTML
    app.session_interface = _AdminSessions()
    app.request_class = _request_class(settings, catalog)
    app.response_class = FileResponse
    app.config.update(
        BODY_TIMEOUT=_BODY_S,
        SESSION_COOKIE_NAME="gateway_admin",
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Strict",
        SESSION_COOKIE_SECURE=settings.is_https,
        PERMANENT_SESSION_LIFETIME=timedelta(seconds=SESSION_S),
    )
    app.json = _Json(app)
    routes.register(app)
    return app


class _App(Quart):
    """Quart, with an answer for a `Host` that is no host name: its own is a traceback."""

    def create_url_adapter(self, request: Any) -> Any:
        """Return what finds a request's route."""
        try:
            return super().create_url_adapter(request)
        except BadHost:
            return _Nowhere()

    async def handle_request(self, request: Request) -> Any:
        """Answer a request, and give back the memory of its body whatever happens."""
        try:
            return await super().handle_request(request)
        finally:
            cast(CountedBody, request.body).release()


class _Nowhere:
    """Finds no route."""

    def match(self, **_: Any) -> NoReturn:
        """Refuse."""
        raise BadRequest("The Host header is not a host name.")


class _Json(DefaultJSONProvider):
    """Compact JSON by msgspec, in the order of the specification."""

    def dumps(self, obj: Any, **kwargs: Any) -> str:  # noqa: ARG002 - Quart's
        """Return an answer's body."""
        return msgspec.json.encode(obj).decode()


class _AdminSessions(SecureCookieSessionInterface):
    """Sessions under /admin only: reading the cookie costs every other request 12 µs."""

    async def open_session(self, app: Quart, request: Any) -> Any:
        """Return the session of an admin page; elsewhere None, which Quart takes as empty."""
        if not request.path.startswith("/admin"):
            return None
        return await super().open_session(app, request)


def _request_class(settings: Settings, catalog: Catalog) -> type[Request]:
    """Return a request whose body may be large only where a file may come, and is counted."""
    memory = BodyMemory(settings.body_memory_mb * 10**6)
    files = {f"/api/x402/{endpoint.slug}" for endpoint in catalog if endpoint.takes_file}

    def limit(method: str, path: str) -> int:
        if method != "POST":
            return SMALL_BODY_BYTES
        if path == "/api/proxy-generate" or path in files:
            return LARGE_BODY_BYTES
        return ESCAPED_BODY_BYTES if path.startswith("/api/x402/") else SMALL_BODY_BYTES

    class LimitedRequest(Request):
        body_class = CountedBody
        body: CountedBody

        def __init__(self, method: str, scheme: str, path: str, *args: Any, **more: Any) -> None:
            more["max_content_length"] = limit(method, path)
            super().__init__(method, scheme, path, *args, **more)
            self.body.memory = memory
            self.body.address_of = lambda: address_of(self, settings.client_ip_header)

        async def get_data(self, *args: Any, **more: Any) -> Any:
            self.body.admit(self.content_length or 0)
            return await super().get_data(*args, **more)

    return LimitedRequest
