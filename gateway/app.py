"""Assembles one gateway.

`create_app` creates the objects that need no database, and `_open_gateway` the rest when the server
starts. Plugins then register their parts, which `gateway.running.lifecycle` starts and stops.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable

import attrs
import structlog
from quart import Quart

from gateway.catalog.catalog import Catalog
from gateway.catalog.reloads import Reloads
from gateway.catalog.watchdog import owners_of, watch_loop
from gateway.chain.client import Web3Chain
from gateway.chain.keys import check_plain_keys, load_key
from gateway.concurrency.fence import Fence
from gateway.concurrency.standstills import Standstills
from gateway.contracts import Chain, Clock, OutputStore, PluginContext, Settler
from gateway.errors import SettingsError
from gateway.outputs import open_outputs
from gateway.payments import (
    Exposure,
    FailedSettlements,
    MethodSettlements,
    Obstacles,
    PaymentMethods,
    Payments,
    Reconciler,
    Refunds,
    Settlements,
)
from gateway.payments.obstacles import WalletCheck
from gateway.plugins.manager import PluginManager
from gateway.plugins.reloading import ask_again
from gateway.plugins.trial import try_catalog
from gateway.running.core_parts import core_parts
from gateway.running.gateway import Gateway
from gateway.running.rate_limits import make_limits
from gateway.running.readiness import Readiness
from gateway.running.timing import Timing
from gateway.sandbox import memory_budget
from gateway.settings import Settings, load_settings
from gateway.store import SqlStore
from gateway.store.data_folder import check_network, open_store
from gateway.tasks import WorkerPool
from gateway.tasks.notifications import Announcer, TaskNotifications
from gateway.telemetry.redaction import Redactor
from gateway.telemetry.spans import Spans
from gateway.version import VERSION
from gateway.web.application import TracedApp, make_app
from gateway.web.front.current import EXTENSION, FAILURE

_log = structlog.get_logger()


@attrs.frozen(kw_only=True, eq=False, repr=False)
class _Assembly:
    """The components that need no database."""

    manager: PluginManager
    catalog: Catalog
    context: PluginContext
    store: SqlStore
    settler: Settler
    redactor: Redactor
    spans: Spans
    timing: Timing
    try_settings: Callable[[Settings], Awaitable[None]]
    # None without a refund key.
    refunds: Refunds | None = attrs.field(init=False)

    @refunds.default
    def _make_refunds(self) -> Refunds | None:
        """Raise `SettingsError` for settings that do not work together."""
        settings, settler = self.context.settings, self.settler
        secret = load_key(settings, "refund")
        if secret is None and settings.refunds == "automatic":
            raise SettingsError(
                "GATEWAY_REFUNDS is automatic, but GATEWAY_REFUND_KEY is not set. It is the "
                "private key that sends refunds: it holds USDC for refunds and a little ETH."
            )
        refunds = Refunds(self.store, self.context, secret) if secret is not None else None
        settling = {getattr(settler, "address", None), *getattr(settler, "addresses", ())}
        if refunds is not None and refunds.address in settling:
            raise SettingsError(
                "GATEWAY_REFUND_KEY is the settlement key. Refunds need a key of their own."
            )
        return refunds


def create_app(
    settings: Settings | None = None,
    *,
    store: SqlStore | None = None,
    chain: Chain | None = None,
    plugins: Iterable[object] = (),
    now: Clock = time.time,
    redactor: Redactor | None = None,
    timing: Timing | None = None,
) -> Quart:
    """Create a gateway as an app that a server can run.

    Production passes at most settings and redactor; tests pass fakes for the rest. Raises
    `SettingsError` for settings or plugins that do not work together.
    """
    settings, redactor, plugins = settings or load_settings(), redactor or Redactor(), list(plugins)
    check_plain_keys(settings)
    manager = PluginManager(plugins, disabled=settings.plugins_disabled)
    catalog = manager.catalog(settings, now, redactor)
    store = store or open_store(settings)
    context = PluginContext(
        settings=settings,
        chain=chain or Web3Chain(settings),
        journal=store,
        now=now,
        find_endpoint=catalog.find_endpoint,
    )
    parts = _Assembly(
        manager=manager,
        catalog=catalog,
        context=context,
        store=store,
        # Before anything is opened, so that a wrong key fails first.
        settler=manager.settler(context),
        redactor=redactor,
        spans=manager.spans(settings),
        timing=timing or Timing(),
        try_settings=lambda changed: try_catalog(changed, plugins, catalog),
    )
    return _make_app(parts)


def _make_app(parts: _Assembly) -> Quart:
    """Create the app, which traces requests and calls if a plugin wants spans."""
    app = make_app(parts.context.settings, parts.catalog)
    if parts.spans.openers:
        app.asgi_app = TracedApp(app.asgi_app, parts.spans)  # type: ignore[assignment, method-assign, arg-type]
        parts.catalog.trace(parts.spans)

    @app.while_serving
    async def serve() -> AsyncGenerator[None, None]:
        try:
            async with parts.store:
                gateway = await _open_gateway(app, parts)
                owners = owners_of(parts.manager.modules(), parts.catalog)
                async with watch_loop(owners, parts.catalog) as gateway.watchdog:
                    _log.info(
                        "started",
                        version=VERSION,
                        network=gateway.settings.network,
                        wallet=gateway.settings.wallet,
                        settlement=gateway.settings.settlement,
                        endpoints=[endpoint.slug for endpoint in gateway.catalog],
                    )
                    async with gateway.lifecycle:
                        yield
                    _log.info("stopped")
        except Exception as error:
            app.extensions[FAILURE] = error
            raise

    return app


# -- with the open database


@attrs.frozen(kw_only=True, eq=False, repr=False)
class _Installation:
    """Identity of this installation, written at the first start."""

    session_secret: str = attrs.field(repr=False)
    file_secret: str = attrs.field(repr=False)
    # Unix seconds.
    born_at: float

    def derive_secret(self, purpose: str) -> str:
        """Derive a plugin's secret for a purpose, in hex."""
        text = b"plugin:" + purpose.encode()
        return hmac.new(self.file_secret.encode(), text, hashlib.sha256).hexdigest()


async def _open_gateway(app: Quart, parts: _Assembly) -> Gateway:
    """Create the gateway on the open database, and attach it to the app.

    Raises `SettingsError` if the database belongs to another network.
    """
    await parts.store.check_settings(parts.context.settings)
    await parts.store.nodes.register(now=parts.context.now())
    await check_network(parts.context.settings, parts.store)
    installation = await _read_installation(parts)
    wallet = parts.context.settings.wallet_key
    before = await parts.store.note_wallet(wallet, now=parts.context.now())
    if before is not None:
        _log.warning("wallet.changed", wallet=wallet, before=before)
    app.secret_key = installation.session_secret
    parts.redactor.add_secrets([installation.session_secret, installation.file_secret])
    memory_budget.SHARED.resize(parts.context.settings.sandbox_memory_mb * 10**6)
    gateway = _make_gateway(parts, installation)
    gateway.lifecycle.parts += core_parts(gateway)
    gateway.lifecycle.parts += parts.manager.parts(gateway)
    for mount in gateway.lifecycle.mounts:
        if mount.limit:
            gateway.limits.add(mount.limit_name, mount.limit)
    app.extensions[EXTENSION] = gateway
    return gateway


async def _read_installation(parts: _Assembly) -> _Installation:
    meta, now = parts.store.meta, parts.context.now
    return _Installation(
        session_secret=await meta("session_secret", lambda: secrets.token_hex(32)),
        file_secret=await meta("file_secret", lambda: secrets.token_hex(32)),
        born_at=float(await meta("born_at", lambda: str(now()))),
    )


def _make_gateway(parts: _Assembly, installation: _Installation) -> Gateway:
    store, settings = parts.store, parts.context.settings
    output_store = open_outputs(settings, installation.file_secret, parts.catalog.media_types)
    notifications = TaskNotifications()
    announcer = Announcer(wakes=store.wakes, notifications=notifications)
    fence, standstills = Fence(parts.context.now), Standstills(now=parts.context.now)
    workers = _make_workers(parts, output_store, announcer.ended, standstills)
    announcer.wake_workers = workers.wake
    context = attrs.evolve(parts.context, derive_secret=installation.derive_secret)
    readiness = Readiness(settings, parts.catalog, store)
    wallet = WalletCheck(settings, context.chain)
    # First, because it may leave out a plugin, with all that it has registered.
    payments = _make_payments(
        parts, context, announcer, readiness, wallet, installation.born_at, fence, standstills
    )
    gateway = Gateway(
        context=context,
        redactor=parts.redactor,
        store=store,
        catalog=parts.catalog,
        output_store=output_store,
        refunds=parts.refunds,
        notifiers=parts.manager.notifiers(),
        workers=workers,
        limits=make_limits(settings, context.now, installation.file_secret),
        notifications=notifications,
        announcer=announcer,
        timing=parts.timing,
        sections=parts.manager.sections(),
        try_settings=parts.try_settings,
        reloads=_make_reloads(parts),
        readiness=readiness,
        wallet=wallet,
        fence=fence,
        standstills=standstills,
        payments=payments,
    )
    announcer.wake_events = gateway.events.wake
    return gateway


def _make_reloads(parts: _Assembly) -> Reloads:
    catalog, settings = parts.catalog, parts.context.settings
    ask = ask_again(parts.manager, settings, catalog.capabilities)
    return Reloads(catalog, ask, parts.redactor.clean)


def _make_workers(
    parts: _Assembly,
    output_store: OutputStore,
    on_done: Callable[[str], None],
    standstills: Standstills,
) -> WorkerPool:
    settings = parts.context.settings
    return WorkerPool(
        store=parts.store,
        catalog=parts.catalog,
        output_store=output_store,
        now=parts.context.now,
        workers=settings.workers,
        retention_s=settings.retention_days * 86400,
        follows_loopback=settings.allow_loopback_links,
        on_done=on_done,
        standstills=standstills,
        spans=parts.spans,
    )


def _make_payments(
    parts: _Assembly,
    context: PluginContext,
    announcer: Announcer,
    readiness: Readiness,
    wallet: WalletCheck,
    born_at: float,
    fence: Fence,
    standstills: Standstills,
) -> Payments:
    store, settings, chain, now = parts.store, context.settings, context.chain, context.now
    methods = PaymentMethods(*parts.manager.ways_to_pay(context), fence)
    obstacles = Obstacles(
        chain, parts.settler, settings.wallet_key, now, tx_patience_s=settings.tx_patience
    )
    return Payments(
        store=store,
        chain=chain,
        methods=methods,
        transfers=parts.manager.transfer_verifier(context),
        transfer_problem=lambda: obstacles.transfer_problem,
        settlements=_make_settlements(parts, context, announcer, born_at, obstacles),
        method_settlements=MethodSettlements(
            store, methods.by_name, now, announcer.queued, announcer.ended
        ),
        check_serving=readiness.check_serving,
        check_maker=readiness.check_maker,
        check_wallet=wallet.check,
        on_queued=announcer.queued,
        now=now,
        born_at=born_at,
        standstills=standstills,
        exposure=_make_exposure(parts, context),
    )


def _make_settlements(
    parts: _Assembly,
    context: PluginContext,
    announcer: Announcer,
    born_at: float,
    obstacles: Obstacles,
) -> Settlements:
    store, settings, chain, now = parts.store, context.settings, context.chain, context.now
    return Settlements(
        store,
        parts.settler,
        Reconciler(store, chain, settings, now, born_at, announcer.ended),
        obstacles,
        FailedSettlements(store, chain, settings.chain, now),
        announcer.queued,
    )


def _make_exposure(parts: _Assembly, context: PluginContext) -> Exposure:
    settings = context.settings
    return Exposure(
        store=parts.store,
        chain=context.chain,
        held_file_bytes=settings.held_files_mb * 10**6,
        now=context.now,
        deployments_per_day=settings.deployments_per_day,
    )
