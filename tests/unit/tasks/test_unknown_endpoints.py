"""Paid tasks of endpoints that this node does not have wait for a node that has them."""

import attrs
import pytest

from gateway import Capability, Pending, ResultKind
from gateway.catalog.catalog import Catalog
from gateway.contracts.nodes import OneNode
from gateway.settings import EndpointOverride
from gateway_testing.facts import ENDPOINT
from tests.patience import until
from tests.unit.tasks.engine_shop import PAPER, TEXT, Gate, PlainApi, opened, passed

_HOUR_S = 3600.0
_GONE = attrs.evolve(ENDPOINT, slug="gone")


async def is_due_unleased(shop, task_id):
    row = await shop.row(task_id)
    return (row["status"], row["lease_token"], row["attempt"]) == ("queued", None, 0)


async def test_it_waits_and_other_tasks_run(shop):
    unknown = await shop.accept(_GONE)
    shop.pool.start()
    assert (await shop.ended(await shop.accept())).status == "completed"
    await shop.pool.fail_unknown()
    assert await is_due_unleased(shop, unknown)


async def test_it_runs_once_the_endpoint_is_there(shop):
    task_id = await shop.accept(_GONE)
    shop.pool.start()
    await shop.ended(await shop.accept())
    shop.catalog.register(_GONE, shop.provider, "test")
    shop.pool.wake()
    task = await shop.ended(task_id)
    assert (task.status, task.attempt) == ("completed", 1)


@pytest.mark.parametrize("begun", ["nothing", "a job"])
async def test_without_its_capability_it_waits_and_fails_after_hours(tmp_path, api, clock, begun):
    song = attrs.evolve(_GONE, slug="song", capability="text-to-song")
    async with opened(tmp_path, api, clock, start=False, unknown_seen_s=0.0) as shop:
        task_id = await shop.accept(song)
        if begun == "a job":
            (lease,) = await shop.store.queue.lease(1, lease_s=60, now=clock())
            await shop.store.queue.begin_submit(lease, now=clock())
            await shop.store.queue.save_handle(lease, await api.submit(lease.request, lease))
            await shop.store.queue.give_back(lease)
        shop.catalog.register(song, api, "test")
        api.usual = TEXT
        shop.pool.start()
        assert (await shop.ended(await shop.accept(PAPER))).status == "completed"
        await shop.pool.fail_unknown()
        assert (await shop.row(task_id))["lease_token"] is None
        (condition,) = await shop.pool.find_conditions()
        assert "cannot check their results: song" in condition.text
        clock.offset_s += 6.1 * _HOUR_S
        await shop.pool.fail_unknown()
        await shop.pool.fail_unknown()
        task = await shop.ended(task_id)
        reason = "provider_error" if begun == "nothing" else "uncertain_submit"
        assert (task.details, task.refund.amount_units) == (reason, 20_000)
    assert len(api.submits) == (1 if begun == "nothing" else 2)


async def test_a_capability_that_is_never_proven_ends_in_a_refund_too(tmp_path, api, clock):
    sound = ResultKind(name="song", media_types={"audio/wav": "wav"})
    song = Capability(name="text-to-song", results=(sound,))
    endpoint = attrs.evolve(_GONE, slug="song", capability=song.name, declared=song)
    async with opened(tmp_path, api, clock, start=False, unknown_seen_s=0.0) as shop:
        task_id = await shop.accept(endpoint)
        shop.catalog.declare(song, "acme")
        shop.catalog.register(endpoint, api, "acme")
        shop.catalog.unproven.add(song.name)
        api.usual = TEXT
        shop.pool.start()
        await shop.ended(await shop.accept(PAPER))
        clock.offset_s += 6.1 * _HOUR_S
        await shop.pool.fail_unknown()
        await shop.pool.fail_unknown()
        task = await shop.ended(task_id)
        assert (task.details, task.refund.amount_units) == ("provider_error", 20_000)


async def test_one_that_a_process_died_with_holds_up_no_other_task(shop):
    unknown = await shop.accept(_GONE)
    await shop.store.queue.lease(1, lease_s=60, now=shop.clock())
    shop.pool.start()
    for task_id in await shop.sold(3):
        assert (await shop.ended(task_id)).status == "completed"
    row = await shop.row(unknown)
    assert (row["lease_token"], row["restarts"], row["attempt"]) == (None, 1, 0)


async def test_one_that_a_process_died_with_runs_alone_once_the_endpoint_is_there(tmp_path, clock):
    gate = Gate()
    async with opened(tmp_path, PlainApi(), clock, start=False) as shop:
        unknown = await shop.accept(_GONE)
        await shop.store.queue.lease(1, lease_s=60, now=clock())
        shop.pool.start()
        await shop.ended(await shop.accept(PAPER))
        shop.catalog.register(_GONE, PlainApi(gate), "test")
        shop.pool.wake()
        await passed(gate.entered)
        assert (await shop.row(unknown))["lone_runs"] == 1
        (new,) = await shop.sold()
        gate.open.set()
        assert (await shop.ended(unknown)).status == "completed"
        assert (await shop.ended(new)).status == "completed"


@pytest.mark.parametrize("begun", ["nothing", "a mark", "a job"])
async def test_after_hours_it_fails_with_a_refund_due(tmp_path, api, clock, begun):
    async with opened(tmp_path, api, clock, start=False, unknown_seen_s=0.0) as shop:
        task_id = await shop.accept(PAPER)
        if begun != "nothing":
            (lease,) = await shop.store.queue.lease(1, lease_s=60, now=clock())
            await shop.store.queue.begin_submit(lease, now=clock())
            if begun == "a job":
                handle = await api.submit(lease.request, lease)
                await shop.store.queue.save_handle(lease, handle)
            await shop.store.queue.give_back(lease)
        shop.catalog.withdraw("test")
        shop.pool.start()
        clock.offset_s += 5.9 * _HOUR_S
        await shop.pool.fail_unknown()
        assert (await shop.row(task_id))["lease_token"] is None
        clock.offset_s += 0.2 * _HOUR_S
        await shop.pool.fail_unknown()
        task = await shop.ended(task_id)
        reason = "provider_error" if begun == "nothing" else "uncertain_submit"
        assert (task.details, task.refund.amount_units) == (reason, 20_000)


async def test_an_old_task_that_another_node_just_gave_back_does_not_fail(shop):
    task_id = await shop.accept(_GONE)
    shop.pool.start()
    shop.clock.offset_s += 7 * _HOUR_S
    for _ in range(3):
        await shop.pool.fail_unknown()
    assert await is_due_unleased(shop, task_id)


async def test_a_job_waits_for_its_plugin_and_is_polled_then(tmp_path, api, clock):
    async with opened(tmp_path, api, clock) as shop:
        task_id = await shop.accept(PAPER)
        await until(lambda: api.polls)
        await shop.crash()
    async with opened(tmp_path, api, clock, start=False) as shop:
        shop.catalog.withdraw("test")
        await shop.store.queue.recover(now=clock())
        shop.pool.start()
        await shop.pool.fail_unknown()
        assert not (await shop.store.task(task_id)).is_done
        api.usual = TEXT
        shop.catalog.register(PAPER, api, "test")
        shop.pool.wake()
        assert (await shop.ended(task_id)).status == "completed"
    assert len(api.submits) == 1


async def test_what_is_switched_off_here_may_be_on_sale_on_another_node(
    tmp_path, clock, monkeypatch
):
    monkeypatch.setattr(OneNode, "has_others", True)
    api = PlainApi()
    async with opened(tmp_path, api, clock, start=False, unknown_seen_s=0.0) as shop:
        shop.pool.catalog = Catalog({"paper": EndpointOverride(enabled=False)}, now=clock)
        shop.pool.catalog.register(PAPER, api, "test")
        shop.pool.resources.catalog = shop.pool.catalog
        task_id = await shop.accept(PAPER)
        shop.pool.start()
        await shop.pool.fail_unknown()
        assert await is_due_unleased(shop, task_id)
        clock.offset_s += 7 * _HOUR_S
        (condition,) = await shop.pool.find_conditions()
        assert condition.name == "endpoint_switched_off"
        assert "this machine's settings switch their endpoints off" in condition.text
        await shop.pool.fail_unknown()
        assert (await shop.ended(task_id)).details == "provider_error"
    assert api.submits == []


async def test_the_operator_sees_which_endpoint_is_missing(shop):
    waiting = [await shop.accept(_GONE) for _ in range(2)]
    shop.provider.script = [Pending()]
    assert await shop.pool.find_conditions() == []
    shop.clock.offset_s += 700
    (condition,) = await shop.pool.find_conditions()
    assert (condition.name, condition.title) == ("endpoint_unknown", "Paid tasks wait for gone")
    assert condition.text.startswith(f"{len(waiting)} paid tasks wait")


async def test_all_missing_endpoints_are_one_condition_with_true_numbers(shop):
    for number in range(1_003):
        await shop.accept(attrs.evolve(ENDPOINT, slug=f"gone-{number % 60:02}"))
    shop.clock.offset_s += 700
    (condition,) = await shop.pool.find_conditions()
    assert condition.title == "Paid tasks wait for 60 endpoints"
    assert condition.text.startswith("1,003 paid tasks wait")
    assert "gone-00, " in condition.text
    assert "gone-09 and 50 more." in condition.text


async def test_a_retired_endpoints_tasks_fail_at_once_also_with_other_nodes(
    tmp_path, clock, monkeypatch
):
    monkeypatch.setattr(OneNode, "has_others", True)
    api = PlainApi()
    async with opened(tmp_path, api, clock, start=False) as shop:
        retired = attrs.evolve(PAPER, slug="retired", retires="2000-01-01")
        shop.catalog.register(retired, api, "test")
        task_id = await shop.accept(retired)
        shop.pool.start()
        task = await shop.ended(task_id)
        assert (task.details, task.payment.state) == ("provider_error", "refund_due")
    assert api.submits == []


async def test_a_node_without_workers_fails_nothing(shop):
    shop.time(unknown_seen_s=0.0)
    task_id = await shop.accept(_GONE)
    shop.clock.offset_s += 7 * _HOUR_S
    await shop.pool.fail_unknown()
    assert await is_due_unleased(shop, task_id)
