"""The parts that every gateway has."""

import asyncio
from functools import partial

import structlog

from gateway.catalog.health import probe_forever
from gateway.concurrency.standstills import BEAT_S
from gateway.contracts import Chain
from gateway.contracts.parts import Part
from gateway.errors import ChainUnavailable
from gateway.outputs import retention
from gateway.outputs.downloads import renew_transports
from gateway.running.gateway import Gateway
from gateway.store import SqlStore
from gateway.store.rows import converter

_log = structlog.get_logger()


def core_parts(gateway: Gateway) -> list[Part]:
    """Return the core's parts, which come before the plugins'.

    They drain in this order. Purchases end before the workers, because a purchase queues a task.
    """

    async def watch_fitness() -> None:
        gateway.store.fitness.watch(gateway.lifecycle.mark_unfit)

    async def warm_libraries() -> None:
        # Otherwise the first request and the first task would wait for their imports.
        await asyncio.to_thread(gateway.limits.load)
        await asyncio.to_thread(converter)

    async def watch_limits() -> None:
        await gateway.limits.find_problem()

    return [
        Part(name="fitness", start=watch_fitness, warm=warm_libraries),
        # Before the other parts that resume, because submits wait only for some seconds.
        _standstills(gateway),
        _leadership(gateway),
        _refunds(gateway),
        _payments(gateway),
        _tasks(gateway),
        gateway.events.make_part(),
        _endpoint_changes(gateway),
        Part(name="reloads", conditions=gateway.reloads.find_conditions),
        Part(name="functions", start=gateway.functions.begin, run=gateway.functions.run),
        Part(name="wallet", run=gateway.wallet.check_until_known),
        Part(
            name="probing",
            run=lambda: probe_forever(gateway.catalog),
            close=gateway.catalog.close,
        ),
        Part(name="limits", run=watch_limits, close=gateway.limits.close),
        *_upkeep(gateway),
        Part(name="intake", close=gateway.intake.close, pending=gateway.requests.find_pending),
        Part(name="checks", close=gateway.shared_checks.close),
    ]


def _standstills(gateway: Gateway) -> Part:
    standstills = gateway.standstills
    return Part(
        name="standstills",
        begin=standstills.begin,
        work=standstills.beat,
        every_s=BEAT_S,
        resume=renew_transports,
        close=standstills.close,
    )


def _endpoint_changes(gateway: Gateway) -> Part:
    poll = gateway.changes.poll
    return Part(
        name="endpoint-changes",
        # Also before the first sale, so that a paused endpoint stays paused after a restart.
        start=poll,
        work=poll,
        every_s=gateway.timing.changes_s,
        resume=poll,
    )


def _leadership(gateway: Gateway) -> Part:
    nodes = gateway.store.nodes

    async def resume() -> None:
        await gateway.store.renew_connections()
        await nodes.resume(gateway.now)

    async def step_down() -> None:
        nodes.step_down()

    return Part(
        name="leadership",
        start=lambda: nodes.start(gateway.now),
        resume=resume,
        drain=step_down,
        close=nodes.stop,
    )


def _upkeep(gateway: Gateway) -> list[Part]:
    """Return the parts that tidy the database and the outputs."""
    timing, store = gateway.timing, gateway.store
    gas = GasRecords(store, gateway.chain)

    def may_delete() -> bool:
        if not gateway.lifecycle.leads():
            return False
        # A clock that is far ahead would make every output look expired.
        obstacles = gateway.settlements.obstacles
        may = gateway.standstills.has_recovered() and obstacles.is_clock_right
        if not may:
            _log.info("retention.waits")
        return may

    return [
        Part(name="give-back-space", work=store.give_back_space, every_s=timing.give_back_space_s),
        Part(name="gas-records", work=gas.complete, every_s=timing.gas_records_s, only_leader=True),
        Part(
            name="retention",
            run=lambda: retention.sweep_forever(
                store, gateway.output_store, gateway.now, is_mine=may_delete
            ),
        ),
    ]


def _refunds(gateway: Gateway) -> Part:
    refunds, promises = gateway.refunds, gateway.refund_promises

    async def start() -> None:
        promises.start()

    async def warm() -> None:
        if refunds is not None:
            refunds.start(gateway.lifecycle.leads)

    async def drain() -> None:
        if refunds is not None:
            await refunds.close()

    return Part(name="refunds", start=start, warm=warm, drain=drain, close=promises.stop)


def _payments(gateway: Gateway) -> Part:
    payments = gateway.payments
    settlements, method_settlements = gateway.settlements, gateway.method_settlements

    async def warm() -> None:
        # Start settling first, so that open payments are closed even if a call below fails.
        settlements.start(gateway.lifecycle.leads)
        method_settlements.start(gateway.lifecycle.leads)
        try:
            await gateway.chain.start()
            await payments.cutoff_block()
            await settlements.obstacles.refresh()
        except ChainUnavailable as error:
            settlements.obstacles.note_unreachable()
            _log.warning("chain.silent", error=error.message, details=error.details)

    async def resume() -> None:
        try:
            await gateway.chain.renew()
        finally:
            await settlements.obstacles.refresh_patiently()

    return Part(
        name="payments",
        warm=warm,
        warm_s=None,
        resume=resume,
        drain=partial(_drain_payments, gateway),
        drain_s=None,
        close=gateway.chain.close,
        # Of tasks and refunds, too: one statement finds all three.
        pending=partial(_find_pending, gateway),
    )


async def _drain_payments(gateway: Gateway) -> None:
    """Let purchases in progress begin to settle, then let settlements end."""
    clock, grace_s = asyncio.get_running_loop().time, gateway.timing.drain_payments_s
    end = clock() + grace_s
    await gateway.payments.wait_for_purchases(timeout_s=grace_s)
    left_s = max(end - clock(), 0.0)
    await asyncio.gather(
        gateway.settlements.close(grace_s=left_s),
        gateway.method_settlements.close(grace_s=left_s),
    )


async def _find_pending(gateway: Gateway) -> list[str]:
    return await gateway.store.find_pending(
        now=gateway.now(),
        sends_refunds=gateway.refunds is not None,
        refunds_automatically=gateway.settings.refunds_automatically,
    )


def _tasks(gateway: Gateway) -> Part:
    async def begin() -> None:
        # Only after every part has started: a failed start would leave attempts behind.
        if "worker" in gateway.settings.roles:
            gateway.workers.start()
        gateway.announcer.start()

    async def drain() -> None:
        await gateway.workers.drain(grace_s=gateway.timing.drain_tasks_s)
        # Wake the other nodes, which continue the tasks that were given back.
        gateway.announcer.queued()

    return Part(
        name="tasks",
        begin=begin,
        work=gateway.workers.fail_unknown,
        resume=gateway.workers.check_leases,
        drain=drain,
        drain_s=None,
        conditions=gateway.workers.find_conditions,
    )


# Sales need the same RPC endpoint, so receipts are read in batches of this size, two calls each,
# with a pause of this many seconds in between. A thousand take a minute.
_BATCH = 20
_PAUSE_S = 1.0
# A transaction without a receipt was replaced, or is too old for the endpoint. After this many
# misses it is skipped.
_MAX_MISSES = 3
# A pass ends at this many skipped ones: SQLite takes at most 32,766 parameters.
_MAX_REMEMBERED = 2_000


class GasRecords:
    """Stores gas and block time of mined transactions that lack them."""

    def __init__(self, store: SqlStore, chain: Chain) -> None:
        self._store = store
        self._chain = chain
        self.pause_s = _PAUSE_S
        # How often a transaction had no receipt, by hash.
        self._misses: dict[str, int] = {}

    async def complete(self) -> None:
        """Complete the transactions, newest first. Raises `ChainUnavailable`."""
        skipped = [tx_hash for tx_hash, misses in self._misses.items() if misses >= _MAX_MISSES]
        while len(skipped) < _MAX_REMEMBERED:
            undated = await self._store.undated(_BATCH, skipped)
            if not undated:
                return
            for tx_hash in undated:
                receipt = await self._chain.receipt(tx_hash)
                if receipt is None:
                    self._misses[tx_hash] = self._misses.get(tx_hash, 0) + 1
                    if len(self._misses) > _MAX_REMEMBERED:
                        # Forget the oldest, which is the least likely to be read again.
                        self._misses.pop(next(iter(self._misses)))
                    skipped.append(tx_hash)
                else:
                    await self._store.note_mined(receipt)
                    self._misses.pop(tx_hash, None)
            await asyncio.sleep(self.pause_s)
