"""Assembles a gateway: the only module that knows all others."""

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import structlog
from quart import Quart, Request
from quart.json.provider import DefaultJSONProvider
from quart.sessions import SecureCookieSessionInterface

from gateway import retention, routes
from gateway.artifacts import LocalArtifacts
from gateway.catalog import Catalog
from gateway.chain import Web3Chain
from gateway.contracts import Chain, Clock, PluginContext, Store
from gateway.errors import ChainUnavailable, SettingsError
from gateway.notices import Notices
from gateway.passwords import AdminPassword
from gateway.payments import Payments, Reconciler, Settlements
from gateway.plugin_manager import PluginManager
from gateway.ratelimit import RateLimits
from gateway.routes.admin import SESSION_S
from gateway.routes.files import FileResponse
from gateway.routes.generate import ESCAPED_BODY_BYTES, LARGE_BODY_BYTES, SMALL_BODY_BYTES
from gateway.services import EXTENSION, Condition, Services
from gateway.settings import Settings, load_settings
from gateway.store import SqliteStore
from gateway.worker import WorkerPool

FAILURE = "gateway-failure"
_WARM_UP_S = 1.0  # after which warming starts even if nobody asked anything yet
_BODY_S = 30  # a client slower than this with its body is cut off
_DRAIN_TASKS_S = 75.0  # with the two others under Fly's kill_timeout of 120
_DRAIN_PAYMENTS_S = 20.0
_log = structlog.get_logger()


def static_folder() -> Path:
    """Return where llms.txt and the pages are: in the wheel inside, in a checkout beside us."""
    inside = Path(__file__).parent / "static"
    return inside if inside.is_dir() else Path(__file__).parent.parent / "static"


def create_app(
    settings: Settings | None = None,
    *,
    store: Store | None = None,
    chain: Chain | None = None,
    plugins: Iterable[object] = (),
    now: Clock = time.time,
) -> Quart:
    """Assemble a gateway. Production passes nothing; tests pass fakes.

    Raises `SettingsError` for settings or plugins that cannot work together.
    """
    settings = settings or load_settings()
    manager = PluginManager(plugins)
    catalog = manager.catalog(settings)
    app = Quart("gateway", template_folder=str(static_folder()), static_folder=None)
    app.url_map.merge_slashes = False  # `//` is an unknown path, not a redirect in HTML
    app.session_interface = _AdminSessions()
    app.request_class = _request_class(catalog)
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
    keep = store or SqliteStore(settings.data_dir / "gateway.db")
    base = chain or Web3Chain(settings)
    context = PluginContext(settings=settings, chain=base, journal=keep, now=now)

    @app.while_serving
    async def serving() -> AsyncGenerator[None, None]:
        try:
            async with contextlib.AsyncExitStack() as stack:
                await stack.enter_async_context(keep)
                gateway = await _services(app, context, manager, catalog, keep)
                await stack.enter_async_context(_running(gateway))
                yield
        except Exception as error:
            app.extensions[FAILURE] = error
            raise

    manager.settler(context)  # a wrong settlement key stops the start here, before anything opens
    return app


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


def _request_class(catalog: Catalog) -> type[Request]:
    """Return a request whose body may be large only where a file may come."""
    files = {f"/api/x402/{endpoint.slug}" for endpoint in catalog if endpoint.takes_file}

    def limit(method: str, path: str) -> int:
        if method != "POST":
            return SMALL_BODY_BYTES
        if path == "/api/proxy-generate" or path in files:
            return LARGE_BODY_BYTES
        return ESCAPED_BODY_BYTES if path.startswith("/api/x402/") else SMALL_BODY_BYTES

    class LimitedRequest(Request):
        def __init__(self, method: str, scheme: str, path: str, *args: Any, **more: Any) -> None:
            more["max_content_length"] = limit(method, path)
            super().__init__(method, scheme, path, *args, **more)

    return LimitedRequest


async def _services(
    app: Quart, context: PluginContext, manager: PluginManager, catalog: Catalog, store: Store
) -> Services:
    """Put the parts together over an open store."""
    settings, now = context.settings, context.now
    await _check_network(settings, store)
    app.secret_key = await store.meta("session_secret", lambda: secrets.token_hex(32))
    file_secret = await store.meta("file_secret", lambda: secrets.token_hex(32))
    artifacts = LocalArtifacts(settings.data_dir / "outputs", file_secret)
    notices, condition = Notices(), Condition(settings)
    workers = WorkerPool(
        store=store,
        catalog=catalog,
        artifacts=artifacts,
        now=now,
        lanes=settings.workers,
        retention_s=settings.retention_days * 86400,
        on_done=notices.post,
    )
    reconciler = Reconciler(store, context.chain, settings, now)
    settlements = Settlements(store, manager.settler(context), reconciler, workers.wake)
    payments = Payments(
        store=store,
        chain=context.chain,
        authorizations=manager.authorization_verifier(context),
        transfers=manager.transfer_verifier(context),
        settlements=settlements,
        check_serving=condition.check_serving,
        on_queued=workers.wake,
        now=now,
        born_at=float(await store.meta("born_at", lambda: str(now()))),
    )
    gateway = Services(
        settings=settings,
        store=store,
        chain=context.chain,
        plugins=manager,
        catalog=catalog,
        artifacts=artifacts,
        settlements=settlements,
        payments=payments,
        workers=workers,
        limits=RateLimits(settings, now),
        notices=notices,
        condition=condition,
        now=now,
        started_at=now(),
        password=AdminPassword(settings, store),
    )
    app.extensions[EXTENSION] = gateway
    return gateway


async def _check_network(settings: Settings, store: Store) -> None:
    """Refuse the data of another network: its nonces and claims mean nothing here."""
    known = await store.meta("network", lambda: settings.network)
    if known != settings.network:
        raise SettingsError(
            f"The data in {settings.data_dir} is of network {known}, GATEWAY_NETWORK is "
            f"{settings.network}. Give that a folder of its own: GATEWAY_DATA_DIR=/data2"
        )


@contextlib.asynccontextmanager
async def _running(gateway: Services) -> AsyncIterator[None]:
    """Work until told to stop; then finish what was begun, and leave the rest durable."""
    gateway.workers.start()
    background: list[asyncio.Task[Any]] = [
        asyncio.create_task(_warm_up(gateway), name="warm-up"),
        asyncio.create_task(
            retention.sweep_forever(gateway.store, gateway.artifacts, gateway.now),
            name="retention",
        ),
    ]
    try:
        yield
    finally:
        gateway.condition.is_draining = True
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        await gateway.settlements.close(grace_s=_DRAIN_PAYMENTS_S)
        await gateway.workers.drain(grace_s=_DRAIN_TASKS_S)
        await gateway.chain.close()


async def _warm_up(gateway: Services) -> None:
    """Import what is heavy once the first answer is out, and look at what is unsettled."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_WARM_UP_S):
            await gateway.answered.wait()
    gateway.settlements.start()  # first of all: nothing below may keep open payments from closing
    try:
        await gateway.chain.start()
        await gateway.payments.floor_block()
    except ChainUnavailable as error:
        _log.warning("chain.silent", error=error.message, details=error.details)
    await gateway.password.make_first()
    gateway.warmed.set()
