"""Leases: a worker that lost one changes nothing, and a working one keeps it."""

import asyncio
import hashlib

import pytest

from gateway import Output, Pending, Result
from gateway.concurrency.standstills import Standstills
from gateway.domain import StoredResult
from gateway.tasks.delivery import Delivery
from gateway_testing.facts import ENDPOINT
from tests.conftest import PNG
from tests.patience import PATIENCE_S, until
from tests.unit.tasks.engine_shop import (
    PAPER,
    PICTURE,
    TEXT,
    Gate,
    JobApi,
    PlainApi,
    attempt_of,
    opened,
    passed,
    steal,
)


async def deliver(shop, lease):
    """Deliver a picture as another process would."""
    await Delivery(shop.pool.resources, lease).store(PICTURE, shop.catalog[ENDPOINT.slug])


async def overtaken(shop, late):
    """Return a task that another process delivers, before its own attempt returns `late`."""
    gate = Gate(result=Result(outputs=(late,)))
    shop.provider.script = [gate]
    shop.pool.start()
    task_id = await shop.accept()
    await passed(gate.entered)
    await deliver(shop, await steal(shop, task_id))
    gate.open.set()
    await shop.idle()
    return await shop.store.task(task_id)


async def test_who_lost_the_lease_changes_neither_the_result_nor_its_files(shop):
    task = await overtaken(shop, Output(data=b"late", media_type="image/png"))
    # The lost lease was a restart, which is no attempt.
    assert (task.status, task.attempt) == ("completed", 1)
    (output,) = task.result.outputs
    assert output.sha256 == hashlib.sha256(PNG).hexdigest()
    on_disk = (shop.folder / output.key).read_bytes()
    assert hashlib.sha256(on_disk).hexdigest() == output.sha256


async def test_a_submit_waits_for_the_recovery_from_a_standstill(shop):
    """Its connection could be dead, and the vendor bill a request that gets no answer."""
    steps, monotonic_at = [], [0.0]
    may_recover = asyncio.Event()

    async def recover():
        steps.append("recovery")
        await may_recover.wait()
        steps.append("recovered")
        return ()

    async def submit(request, job):
        steps.append("submit")
        return PICTURE

    standstills = Standstills(
        wall=lambda: 1e9 + monotonic_at[0],
        monotonic=lambda: monotonic_at[0],
        recover=recover,
        wait_s=PATIENCE_S,
    )
    shop.pool.resources.standstills = standstills
    shop.provider.script = [submit]
    monotonic_at[0] = 3600.0
    shop.pool.start()
    task_id = await shop.accept()
    await until(lambda: steps)
    await asyncio.sleep(0.05)
    assert steps == ["recovery"]
    may_recover.set()
    assert (await shop.ended(task_id)).status == "completed"
    assert steps == ["recovery", "recovered", "submit"]


async def test_the_files_of_a_refused_result_are_deleted(shop):
    task = await overtaken(shop, Output(data=b"late", media_type="image/jpeg"))
    known = {shop.folder / output.key for output in task.result.outputs}
    assert {path for path in shop.folder.rglob("*") if path.is_file()} == known


async def test_a_lane_that_lost_its_lease_stops(shop):
    shop.time(heartbeat_s=0.02, extend_s=0.02)
    gate = Gate()
    shop.provider.script = [gate]
    shop.pool.start()
    task_id = await shop.accept()
    await passed(gate.entered)
    lease = await steal(shop, task_id)
    await until(lambda: gate.running == 0)
    assert await shop.store.queue.complete(
        lease, StoredResult(text="mine"), expires_at=shop.clock(), now=shop.clock()
    )


async def test_a_lease_is_kept_although_prolonging_it_fails_once(shop):
    shop.time(heartbeat_s=0.01, extend_s=0.01)
    shop.clock.frozen_at = shop.clock()
    extend, calls = shop.store.queue.extend, []

    async def fails_once(lease, **more):
        calls.append(lease)
        if len(calls) == 1:
            raise OSError("disk trouble")
        return await extend(lease, **more)

    shop.store.queue.extend = fails_once
    gate = Gate()
    shop.provider.script = [gate, gate]
    shop.pool.start()
    task_id = await shop.accept()
    await until(lambda: calls)
    shop.clock.offset_s += 50
    before = len(calls)
    await until(lambda: len(calls) >= before + 2)  # so one that began after the jump has ended
    shop.clock.offset_s += 50
    assert await shop.store.queue.lease(1, lease_s=60, now=shop.clock()) == []
    assert gate.running == 1  # the same task is not generated twice
    gate.open.set()
    task = await shop.ended(task_id)
    assert (task.status, task.attempt) == ("completed", 1)
    await until(lambda: task_id in shop.done)


async def test_the_queue_is_worked_off_although_the_store_failed_at_the_start(shop):
    recover = shop.store.queue.recover

    async def fails_once(**more):
        shop.store.queue.recover = recover
        raise OSError("disk trouble")

    shop.store.queue.recover = fails_once
    task_id = await shop.accept()
    shop.pool.start()
    assert (await shop.ended(task_id)).status == "completed"


# -- lost, in every phase


@pytest.mark.parametrize("phase", ["mark", "submit", "save", "poll", "pause", "fetch", "keep"])
async def test_a_lease_lost_in_any_phase_stops_the_lane_and_changes_nothing(
    tmp_path, clock, phase, monkeypatch
):
    """The other attempt has it: there is at most one submit of ours, and no result."""
    api, gate = JobApi(), Gate()
    api.usual = TEXT

    async def stuck(*_, **__):
        return await gate(None, None)

    if phase == "pause":
        api.usual = Pending(poll_after_s=60)
    beats = {"heartbeat_s": 0.02, "extend_s": 0.02}
    async with opened(tmp_path, api, clock, start=False, **beats) as shop:
        queue = shop.store.queue
        monkeypatch.setattr(
            *{
                "mark": (queue, "begin_submit", stuck),
                "submit": (api, "to_submit", [stuck]),
                "save": (queue, "save_handle", stuck),
                "poll": (api, "to_poll", [stuck]),
                "pause": (api, "to_poll", []),
                "fetch": (Delivery, "fetch", stuck),
                "keep": (shop.pool.resources.output_store, "save", stuck),
            }[phase]
        )
        shop.pool.start()
        task_id = await shop.accept(PAPER)
        await (until(lambda: api.polls) if phase == "pause" else passed(gate.entered))
        lease = await steal(shop, task_id)
        await shop.idle()
        assert gate.running == 0
        row = await shop.row(task_id)
        assert (row["lease_token"], row["status"]) == (lease.token, "processing")
        result = StoredResult(text="theirs")
        assert await queue.complete(lease, result, expires_at=clock(), now=clock())
    assert len(api.submits) <= 1


@pytest.mark.parametrize("write", ["begin_submit", "save_handle"])
async def test_who_finds_its_lease_lost_at_a_write_stops(tmp_path, clock, write):
    api = JobApi()
    async with opened(tmp_path, api, clock) as shop:
        real, stolen = getattr(shop.store.queue, write), []

        async def loses(lease, *args, **more):
            setattr(shop.store.queue, write, real)
            stolen.append(await steal(shop, lease.task_id))
            return await real(lease, *args, **more)

        setattr(shop.store.queue, write, loses)
        task_id = await shop.accept(PAPER)
        await until(lambda: stolen)
        await shop.idle()
        assert (await shop.row(task_id))["lease_token"] == stolen[0].token
        assert (len(api.submits), api.polls) == (int(write == "save_handle"), [])
        assert not shop.circuit._failures


async def test_a_lost_lease_is_found_before_the_mark_and_not_after_the_submit(tmp_path, clock):
    """A second attempt that finds the mark and no handle does not submit: the first still may."""
    gate, api = Gate(TEXT), PlainApi()
    api.script = [gate]
    async with opened(tmp_path, api, clock) as shop:
        task_id = await shop.accept(PAPER)
        await passed(gate.entered)
        await attempt_of(shop, await steal(shop, task_id)).run()
        gate.open.set()
        await shop.idle()
        assert (await shop.store.task(task_id)).details == "uncertain_submit"
    assert len(api.submits) == 1


# -- our own, after the clock or the loop was paused


@pytest.mark.parametrize("jump_s", [61, 3600, 10**7])
async def test_a_clock_that_jumps_does_not_make_us_take_our_own_tasks(tmp_path, clock, jump_s):
    """As after a suspension of the machine:

    a submit is in progress, and its lease seems expired.
    """
    gate, api = Gate(TEXT), PlainApi()
    api.script = [gate]
    async with opened(tmp_path, api, clock) as shop:
        task_id = await shop.accept(PAPER)
        await passed(gate.entered)
        clock.offset_s += jump_s
        other = await shop.accept(PAPER)  # wakes the dispatcher
        assert (await shop.ended(other)).status == "completed"
        assert (await shop.row(task_id))["attempt"] == 1
        gate.open.set()
        assert (await shop.ended(task_id)).status == "completed"
    assert len(api.submits) == 2


async def test_a_plugin_that_holds_the_loop_ends_nobody_elses_lease(tmp_path, clock):
    gate = Gate(TEXT)

    async def holds(request, job):
        clock.offset_s += 61  # without a step of the loop, as while a plugin blocks
        return TEXT

    api = PlainApi(gate, holds)
    async with opened(tmp_path, api, clock) as shop:
        task_id = await shop.accept(PAPER)
        await passed(gate.entered)
        assert (await shop.ended(await shop.accept(PAPER))).status == "completed"
        assert (await shop.ended(await shop.accept(PAPER))).status == "completed"
        gate.open.set()
        assert (await shop.ended(task_id)).status == "completed"
    assert len(api.submits) == 3
