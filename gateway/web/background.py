"""The work beside the requests of one running gateway, from its start to its end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import structlog

from gateway.errors import ChainUnavailable
from gateway.outputs import retention
from gateway.payments.periodic import Periodic
from gateway.plugins.health import probe_forever
from gateway.web.services import Services

_log = structlog.get_logger()


@contextlib.asynccontextmanager
async def run_background_work(services: Services) -> AsyncIterator[None]:
    """Do the background work inside the block.

    At its end, work that has begun is finished; all other work waits in the database for the
    next start.
    """
    services.workers.start()
    services.deliveries.start()
    space = Periodic(
        "give-back-space", services.store.give_back_space, services.timing.give_back_space_s
    )
    space.start()
    background = _start_background_tasks(services)
    try:
        yield
    finally:
        services.stop_selling()
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        await services.shared_checks.close()
        await space.stop()
        await _drain(services)
        await _close(services)


def _start_background_tasks(services: Services) -> list[asyncio.Task[Any]]:
    work = {
        "warm-up": _warm_up(services),
        "retention": retention.sweep_forever(services.store, services.output_store, services.now),
        "probing": _probe_providers(services),
        "wallet": _look_at_wallet(services),
    }
    return [asyncio.create_task(coroutine, name=name) for name, coroutine in work.items()]


async def _warm_up(services: Services) -> None:
    """Import heavy libraries after the first answer, and take up open payments."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(services.timing.warm_up_s):
            await services.answered.wait()
    # Settling starts first, so that nothing below can keep open payments from closing.
    services.settlements.start()
    if services.refunds is not None:
        services.refunds.start()
    try:
        await services.chain.start()
        await services.payments.cutoff_block()
        await services.settlements.obstacles.look()
    except ChainUnavailable as error:
        _log.warning("chain.silent", error=error.message, details=error.details)
    await services.password.make_first()
    services.warmed.set()


async def _probe_providers(services: Services) -> None:
    await services.warmed.wait()
    await probe_forever(services.catalog)


async def _look_at_wallet(services: Services) -> None:
    await services.warmed.wait()
    await services.wallet.look_until_known()


async def _drain(services: Services) -> None:
    """Finish refunds, payments, tasks and deliveries that have begun, each within its time."""
    if services.refunds is not None:
        await services.refunds.close()
    await services.settlements.close(grace_s=services.timing.drain_payments_s)
    await services.workers.drain(grace_s=services.timing.drain_tasks_s)
    await services.deliveries.close()


async def _close(services: Services) -> None:
    if services.mcp is not None:
        await services.mcp.close()
    await services.linked_files.close()
    await services.catalog.close()
    services.pages.close()
    services.bodies.close()
    services.password.close()
    await services.chain.close()
