"""The work beside the requests of one running gateway, from its start to its end."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator
from typing import Any

import structlog

from gateway.catalog.health import probe_forever
from gateway.concurrency.late_imports import import_in_turn
from gateway.concurrency.outliving import outlive
from gateway.concurrency.periodic import Periodic
from gateway.errors import ChainUnavailable
from gateway.outputs import retention
from gateway.payments.gas_records import GasRecords
from gateway.version import VERSION
from gateway.web.services import Services

_WATCHES = ("gateway_operator.alarms.state_watch", "gateway_operator.running")
_log = structlog.get_logger()


@contextlib.asynccontextmanager
async def run_background_work(services: Services) -> AsyncIterator[None]:
    """Do the background work inside the block.

    At its end, work that has begun is finished; all other work waits in the database for the
    next start.
    """
    _log_start(services)
    services.store.fitness.watch(functools.partial(_end_unfit, services))
    await services.leadership.start()
    if "worker" in services.settings.roles:
        services.workers.start()
    services.deliveries.is_mine = services.leadership.leads
    services.deliveries.start()
    services.announcer.start()
    space = Periodic(
        "give-back-space", services.store.give_back_space, services.timing.give_back_space_s
    )
    space.start()
    gas = Periodic(
        "gas-records",
        GasRecords(services.store, services.chain).look,
        services.timing.gas_records_s,
        wait_first=True,
        is_mine=services.leadership.leads,
    )
    gas.start()
    changes = Periodic(
        "endpoint-changes", services.changes.look, services.timing.changes_s, wait_first=True
    )
    changes.start()
    services.refund_promises.start()
    background = _start_background_tasks(services)
    try:
        yield
    finally:
        await drain(services)
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        await services.shared_checks.close()
        await space.stop()
        await gas.stop()
        await changes.stop()
        await services.refund_promises.stop()
        await services.leadership.stop()
        await _close(services)
        _log.info("stopped")


def _log_start(services: Services) -> None:
    settings = services.settings
    _log.info(
        "started",
        version=VERSION,
        network=settings.network,
        wallet=settings.wallet,
        settlement=settings.settlement,
        endpoints=[endpoint.slug for endpoint in services.catalog],
    )


def _start_background_tasks(services: Services) -> list[asyncio.Task[Any]]:
    work = {
        "warm-up": _warm_up(services),
        "retention": retention.sweep_forever(
            services.store,
            services.output_store,
            services.now,
            is_mine=services.leadership.leads,
        ),
        "probing": _probe_providers(services),
        "limits": services.limits.find_problem(),
        "wallet": _look_at_wallet(services),
        "backups": _make_backups(services),
        "state-watch": _watch_state(services),
        "alarms": _watch_alarms(services),
        "provider-states": _share_providers(services),
    }
    tasks = [asyncio.create_task(coroutine, name=name) for name, coroutine in work.items()]
    for task in tasks:
        task.add_done_callback(_log_failure)
    return tasks


def _log_failure(task: asyncio.Task[Any]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        _log.error("background.failed", work=task.get_name(), exc_info=error)


async def _warm_up(services: Services) -> None:
    """Import heavy libraries after the first answer, and take up open payments."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(services.timing.warm_up_s):
            await services.answered.wait()
    if services.readiness.is_draining:
        return
    # Settling starts first, so that nothing below can keep open payments from closing.
    is_mine = services.leadership.leads
    services.settlements.start(is_mine)
    services.method_settlements.start(is_mine)
    if services.refunds is not None:
        services.refunds.start(is_mine)
    try:
        await services.chain.start()
        await services.payments.cutoff_block()
        await services.settlements.obstacles.look()
    except ChainUnavailable as error:
        services.settlements.obstacles.note_silence()
        _log.warning("chain.silent", error=error.message, details=error.details)
    await services.password.make_first()
    # The collector of garbage freezes what is imported by then.
    for name in _WATCHES:
        await asyncio.to_thread(import_in_turn, name)
    services.warmed.set()


async def _probe_providers(services: Services) -> None:
    await services.warmed.wait()
    await probe_forever(services.catalog)


async def _look_at_wallet(services: Services) -> None:
    await services.warmed.wait()
    await services.wallet.look_until_known()


async def _make_backups(services: Services) -> None:
    await services.warmed.wait()
    if services.backups is not None:
        await services.backups.repeat_forever()


async def _watch_state(services: Services) -> None:
    await services.warmed.wait()
    from gateway_operator.alarms.state_watch import StateWatch  # noqa: PLC0415 - see `_WATCHES`

    await StateWatch(services).look_forever()


def _end_unfit(services: Services, problem: str) -> None:
    """Sell nothing more, and let the server end the process, which may not go on."""
    _log.error("node.unfit", problem=problem)
    services.stop_selling()
    services.unfit.set()


async def _watch_alarms(services: Services) -> None:
    await services.warmed.wait()
    services.alarms.is_mine = services.leadership.leads
    await services.alarms.run()


async def _share_providers(services: Services) -> None:
    if services.shared_providers is not None:
        looks = Periodic(
            "provider-states",
            services.shared_providers.look,
            services.timing.provider_states_s,
            wait_first=True,
        )
        await looks.repeat()


async def drain(services: Services) -> None:
    """Sell nothing more, and finish what has begun; all callers wait for the same draining.

    The server keeps its socket open meanwhile: a buyer polls a task that is still being made, and
    reads that a purchase has to wait.
    """
    if services.draining is None:
        services.stop_selling()
        _log.info("draining", tasks=services.workers.running)
        services.draining = asyncio.create_task(_drain(services), name="drain")
    await outlive(services.draining)


async def _drain(services: Services) -> None:
    """Finish refunds, payments, tasks and deliveries that have begun, each within its time."""
    try:
        # Nothing is swept here from now on, and tasks may take a minute.
        services.leadership.step_down()
        if services.refunds is not None:
            await services.refunds.close()
        await _finish_payments(services, services.timing.drain_payments_s)
        await services.workers.drain(grace_s=services.timing.drain_tasks_s)
        # Another node takes up at once what was given back.
        services.announcer.queued()
        await services.deliveries.close()
    finally:
        services.end_waits()


async def _finish_payments(services: Services, grace_s: float) -> None:
    """Let purchases that were being checked reach their settlement, then let settlements end."""
    clock = asyncio.get_running_loop().time
    end = clock() + grace_s
    await services.payments.wait_for_begun(timeout_s=grace_s)
    left_s = max(end - clock(), 0.0)
    await asyncio.gather(
        services.settlements.close(grace_s=left_s),
        services.method_settlements.close(grace_s=left_s),
    )


async def _close(services: Services) -> None:
    await services.close_operator_parts()
    if services.mcp is not None:
        await services.mcp.close()
    await services.linked_files.close()
    await services.limits.close()
    await services.catalog.close()
    services.pages.close()
    services.sent_pictures.close()
    services.bodies.close()
    services.password.close()
    await services.chain.close()
