"""Assembles a gateway: the only module that knows all others."""

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from typing import Any

import structlog
from quart import Quart

from gateway.chain.client import Web3Chain
from gateway.chain.keys import check_plain_keys, load_key
from gateway.chain.wallet_check import WalletCheck
from gateway.contracts import Chain, Clock, OutputStore, PluginContext, Settler, Store
from gateway.errors import ChainUnavailable, SettingsError
from gateway.outputs import open_outputs, retention
from gateway.payments import (
    Exposure,
    FailedSettlements,
    Obstacles,
    Payments,
    Reconciler,
    Refunds,
    Settlements,
)
from gateway.payments.periodic import Periodic
from gateway.plugins.catalog import Catalog
from gateway.plugins.health import probe_forever
from gateway.plugins.manager import PluginManager
from gateway.plugins.watchdog import owners_of, watch_loop
from gateway.redaction import Redactor
from gateway.settings import Settings, load_settings
from gateway.store import SqliteStore
from gateway.store.data_folder import check_network
from gateway.tasks import WorkerPool
from gateway.tasks.notifications import LongPolls, TaskNotifications
from gateway.web.admin_password import AdminPassword
from gateway.web.application import bare_app
from gateway.web.rate_limits import RateLimits
from gateway.web.services import EXTENSION, FAILURE, Readiness, Services

_WARM_UP_S = 1.0  # after which warming starts even if nobody asked anything yet
_DRAIN_TASKS_S = 75.0  # with the two others under Fly's kill_timeout of 120
_DRAIN_PAYMENTS_S = 20.0
_SPACE_S = 30.0  # between two looks at whether the database can give disk back
_log = structlog.get_logger()


def create_app(
    settings: Settings | None = None,
    *,
    store: Store | None = None,
    chain: Chain | None = None,
    plugins: Iterable[object] = (),
    now: Clock = time.time,
    redactor: Redactor | None = None,
) -> Quart:
    """Assemble a gateway. Production passes nothing; tests pass fakes.

    Raises `SettingsError` for settings or plugins that cannot work together.
    """
    settings = settings or load_settings()
    check_plain_keys(settings)
    manager = PluginManager(plugins)
    redactor = redactor or Redactor()
    catalog = manager.catalog(settings, now, redactor)
    app = bare_app(settings, catalog)
    keep = store or SqliteStore(settings.data_dir / "gateway.db")
    base = chain or Web3Chain(settings)
    context = PluginContext(settings=settings, chain=base, journal=keep, now=now)
    settler = manager.settler(context)  # a wrong key stops here, before anything opens
    refunds = _refunds(context, keep, settler)

    @app.while_serving
    async def serving() -> AsyncGenerator[None, None]:
        try:
            async with contextlib.AsyncExitStack() as stack:
                await stack.enter_async_context(keep)
                gateway = await _services(
                    app, context, manager, catalog, keep, settler, refunds, redactor
                )
                owners = owners_of(manager.modules(), catalog)
                await stack.enter_async_context(watch_loop(owners, catalog))
                await stack.enter_async_context(_running(gateway))
                yield
        except Exception as error:
            app.extensions[FAILURE] = error
            raise

    return app


async def _services(
    app: Quart,
    context: PluginContext,
    manager: PluginManager,
    catalog: Catalog,
    store: Store,
    settler: Settler,
    refunds: Refunds | None,
    redactor: Redactor,
) -> Services:
    """Put the parts together over an open store."""
    settings, now = context.settings, context.now
    await check_network(settings, store)
    app.secret_key = await store.meta("session_secret", lambda: secrets.token_hex(32))
    file_secret = await store.meta("file_secret", lambda: secrets.token_hex(32))
    redactor.learn([app.secret_key, file_secret])
    output_store = open_outputs(settings, file_secret)
    notifications, readiness = TaskNotifications(), Readiness(settings, catalog)
    workers = _workers(context, catalog, store, output_store, notifications)
    wallet = WalletCheck(settings, context.chain)
    reconciler = Reconciler(store, context.chain, settings, now)
    obstacles = Obstacles(context.chain, settler, settings.wallet_key, now)
    failed = FailedSettlements(store, context.chain, now)
    settlements = Settlements(store, settler, reconciler, obstacles, failed, workers.wake)
    born_at = float(await store.meta("born_at", lambda: str(now())))
    gateway = Services(
        settings=settings,
        redactor=redactor,
        store=store,
        chain=context.chain,
        catalog=catalog,
        output_store=output_store,
        settlements=settlements,
        refunds=refunds,
        payments=_payments(
            context, manager, store, settlements, readiness, wallet, workers, born_at
        ),
        workers=workers,
        limits=RateLimits(settings, now),
        notifications=notifications,
        long_polls=LongPolls(settings.max_long_polls, settings.max_long_polls_per_address),
        readiness=readiness,
        wallet=wallet,
        now=now,
        started_at=now(),
        password=AdminPassword(settings, store),
    )
    app.extensions[EXTENSION] = gateway
    return gateway


def _payments(
    context: PluginContext,
    manager: PluginManager,
    store: Store,
    settlements: Settlements,
    readiness: Readiness,
    wallet: WalletCheck,
    workers: WorkerPool,
    born_at: float,
) -> Payments:
    return Payments(
        store=store,
        chain=context.chain,
        authorizations=manager.authorization_verifier(context),
        transfers=manager.transfer_verifier(context),
        settlements=settlements,
        check_serving=readiness.check_serving,
        check_wallet=wallet.check,
        on_queued=workers.wake,
        now=context.now,
        born_at=born_at,
        exposure=Exposure(
            store=store,
            chain=context.chain,
            held_file_bytes=context.settings.held_files_mb * 10**6,
            now=context.now,
        ),
    )


def _refunds(context: PluginContext, store: Store, settler: Settler) -> Refunds | None:
    """Return who sends refunds; None without a refund key.

    Raises `SettingsError` where the settings cannot work together.
    """
    secret = load_key(context.settings, "refund")
    if secret is None and context.settings.refunds == "automatic":
        raise SettingsError(
            "GATEWAY_REFUNDS is automatic, but GATEWAY_REFUND_KEY is not set. It is the private "
            "key that sends them: it holds USDC for refunds and a little ETH."
        )
    refunds = Refunds(store, context, secret) if secret is not None else None
    if refunds is not None and refunds.address == getattr(settler, "address", None):
        raise SettingsError(
            "GATEWAY_REFUND_KEY is the settlement key. Refunds need a key of their own."
        )
    return refunds


def _workers(
    context: PluginContext,
    catalog: Catalog,
    store: Store,
    output_store: OutputStore,
    notifications: TaskNotifications,
) -> WorkerPool:
    return WorkerPool(
        store=store,
        catalog=catalog,
        output_store=output_store,
        now=context.now,
        workers=context.settings.workers,
        retention_s=context.settings.retention_days * 86400,
        on_done=notifications.post,
    )


@contextlib.asynccontextmanager
async def _running(gateway: Services) -> AsyncIterator[None]:
    """Work until told to stop; then finish what was begun, and leave the rest durable."""
    gateway.workers.start()
    space = Periodic("give-back-space", gateway.store.give_back_space, _SPACE_S)
    space.start()
    background: list[asyncio.Task[Any]] = [
        asyncio.create_task(_warm_up(gateway), name="warm-up"),
        asyncio.create_task(
            retention.sweep_forever(gateway.store, gateway.output_store, gateway.now),
            name="retention",
        ),
        asyncio.create_task(_probe(gateway), name="probing"),
        asyncio.create_task(_look_at_wallet(gateway), name="wallet"),
    ]
    try:
        yield
    finally:
        gateway.readiness.is_draining = True
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        await gateway.shared_checks.close()
        await space.stop()
        if gateway.refunds is not None:
            await gateway.refunds.close()
        await gateway.settlements.close(grace_s=_DRAIN_PAYMENTS_S)
        await gateway.workers.drain(grace_s=_DRAIN_TASKS_S)
        await gateway.catalog.close()
        gateway.pages.close()
        gateway.bodies.close()
        gateway.password.close()
        await gateway.chain.close()


async def _probe(gateway: Services) -> None:
    await gateway.warmed.wait()
    await probe_forever(gateway.catalog)


async def _look_at_wallet(gateway: Services) -> None:
    await gateway.warmed.wait()
    await gateway.wallet.look_until_known()


async def _warm_up(gateway: Services) -> None:
    """Import what is heavy once the first answer is out, and look at what is unsettled."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_WARM_UP_S):
            await gateway.answered.wait()
    gateway.settlements.start()  # first of all: nothing below may keep open payments from closing
    if gateway.refunds is not None:
        gateway.refunds.start()
    try:
        await gateway.chain.start()
        await gateway.payments.cutoff_block()
        await gateway.settlements.obstacles.look()
    except ChainUnavailable as error:
        _log.warning("chain.silent", error=error.message, details=error.details)
    await gateway.password.make_first()
    gateway.warmed.set()
