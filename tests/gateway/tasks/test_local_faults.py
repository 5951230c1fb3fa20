"""This machine's own faults: they blame no provider, and nothing is bought again for them."""

import sqlite3

import pytest
import structlog

from gateway.sandbox import Sandbox, SandboxLimits
from gateway.sandbox.pictures import Pictures
from tests.patience import until
from tests.unit.tasks.engine_shop import PICTURE, PlainApi, opened


@pytest.fixture
def killed():
    """Pictures whose decoder is always killed from outside, as by the kernel without memory."""
    pictures = Pictures(
        sandbox=Sandbox(function="pictures_children:vanish", limits=SandboxLimits())
    )
    yield pictures
    pictures.close()


def looked_at_by(shop, pictures):
    shop.pool.resources.results.pictures = pictures


async def test_a_picture_waits_for_our_decoder_and_is_not_made_again(tmp_path, clock, killed):
    api = PlainApi(*[PICTURE] * 9)
    async with opened(tmp_path, api, clock, write_pauses_s=(0.05,) * 1000) as shop:
        well = shop.pool.resources.results.pictures
        looked_at_by(shop, killed)
        with structlog.testing.capture_logs() as lines:
            task_id = await shop.accept()
            await until(lambda: [one for one in lines if one["event"] == "output.not_stored"])
            assert not (await shop.store.task(task_id)).is_done
            killed._sandbox, broken = well._sandbox, killed._sandbox
            task = await shop.ended(task_id)
        broken.close()
    assert (task.status, task.attempt, len(api.submits)) == ("completed", 1, 1)


async def test_our_decoder_being_away_for_long_is_owed_back_and_no_providers_fault(
    tmp_path, clock, killed
):
    api = PlainApi(*[PICTURE] * 50)
    async with opened(tmp_path, api, clock, write_pauses_s=(0.01,)) as shop:
        looked_at_by(shop, killed)
        tasks = [await shop.ended(await shop.accept()) for _ in range(6)]
        assert not shop.circuit.is_open
    assert {(task.details, task.attempt) for task in tasks} == {("provider_error", 1)}
    assert "could not be kept" in tasks[0].error
    assert len(api.submits) == 6


async def test_a_mark_that_no_disk_takes_sends_nothing_and_is_no_providers_fault(tmp_path, clock):
    api, asked = PlainApi(), []
    # A long backoff, so that no task uses up its attempts while the disk is full.
    async with opened(tmp_path, api, clock, backoff_s=60.0) as shop:
        mark = shop.store.queue.begin_submit

        async def full(lease, *_, **__):
            asked.append(lease.task_id)
            raise sqlite3.OperationalError("database or disk is full")

        shop.store.queue.begin_submit = full
        tasks = await shop.sold(6)
        await until(lambda: set(asked) == set(tasks))
        await shop.idle()
        assert (shop.circuit.is_open, api.submits) == (False, [])
        shop.store.queue.begin_submit = mark
        clock.offset_s += 3600
        shop.pool.wake()
        assert {(await shop.ended(one)).status for one in tasks} == {"completed"}
    assert sorted(api.submits) == sorted(tasks)
