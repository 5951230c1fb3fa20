"""Retention: database and output store agree, wherever a process died."""
# ruff: noqa: ASYNC110 - polls from outside, without an event

import asyncio
import os
import time

import pytest

from gateway import Output, Result
from gateway.outputs import DiskOutputs, retention
from gateway.store import SqliteStore
from gateway_bucket.fallback import BucketWithFallback
from gateway_bucket.outputs import BucketOutputs
from gateway_testing.facts import NOW, leased, settling
from tests.conftest import PNG
from tests.migrated_databases import put_database
from tests.patience import PATIENCE_S, until
from tests.unit.outputs.conftest import PICTURE, listed

DAY = 86_400
LATER = time.time() + 365 * DAY


@pytest.fixture
async def store(tmp_path):
    async with SqliteStore(put_database(tmp_path / "gateway.db")) as opened_store:
        yield opened_store


@pytest.fixture(params=["disk", "bucket", "bucket first"])
def output_store(request, local):
    if request.param == "disk":
        return local
    bucket = BucketOutputs(request.getfixturevalue("bucket"), "secret")
    return bucket if request.param == "bucket" else BucketWithFallback(bucket, local)


def folder_of(lease) -> str:
    """Named like an attempt's."""
    return f"{lease.task_id}-{lease.token[:16].lower()}"


async def kept(store, output_store, number, *, expires_at=NOW + 10):
    """Complete a task; returns its id and its output."""
    lease = await leased(store, number)
    stored = await output_store.save(folder_of(lease), PICTURE)
    await store.queue.complete(lease, stored, expires_at=expires_at, now=NOW)
    return lease.task_id, stored.outputs[0]


# -- expired


async def test_each_batch_asks_whether_it_may_delete(store, local, monkeypatch):
    for number in (1, 2, 3):
        await kept(store, local, number)
    monkeypatch.setattr(retention, "_BATCH", 1)
    answers = [True, True, False]

    def is_mine():
        return bool(answers) and answers.pop(0)

    sweeping = asyncio.create_task(
        retention.sweep_forever(store, local, lambda: NOW + 20, pause_s=0.01, is_mine=is_mine)
    )
    await until(lambda: not answers)
    await asyncio.sleep(0.05)
    sweeping.cancel()
    assert len(await store.expired_outputs(now=NOW + 20, limit=9)) == 1


async def test_a_sweep_deletes_what_is_past_its_time_and_marks_its_task(store, output_store):
    old, _ = await kept(store, output_store, 1)
    new, output = await kept(store, output_store, 2, expires_at=NOW + 30)
    assert await retention.sweep(store, output_store, NOW + 9) == 0
    assert await retention.sweep(store, output_store, NOW + 20) == 1
    assert await retention.sweep(store, output_store, NOW + 20) == 0
    assert await listed(output_store, LATER) == [output.key]
    assert (await store.task(old)).outputs_gone
    assert not (await store.task(new)).outputs_gone


async def test_a_crash_between_deleting_and_marking_is_swept_again(
    store, output_store, monkeypatch
):
    task_id, _ = await kept(store, output_store, 1)
    forget = store.forget_outputs

    async def crashes(task_ids):
        raise OSError("the process ends here")

    monkeypatch.setattr(store, "forget_outputs", crashes)
    with pytest.raises(OSError, match="ends here"):
        await retention.sweep(store, output_store, NOW + 20)
    assert await listed(output_store, LATER) == []
    monkeypatch.setattr(store, "forget_outputs", forget)
    assert await retention.sweep(store, output_store, NOW + 20) == 1
    assert (await store.task(task_id)).outputs_gone


async def test_more_than_a_batch_is_swept_batch_by_batch(store, output_store, monkeypatch):
    monkeypatch.setattr(retention, "_BATCH", 2)
    for number in range(1, 6):
        await kept(store, output_store, number)
    sweeper = asyncio.create_task(retention.sweep_forever(store, output_store, lambda: NOW + 20))
    async with asyncio.timeout(PATIENCE_S):
        while await listed(output_store, LATER):
            await asyncio.sleep(0.01)
    sweeper.cancel()
    await asyncio.gather(sweeper, return_exceptions=True)


async def test_one_file_that_cannot_be_deleted_keeps_no_other(store, local, folder):
    _, stuck = await kept(store, local, 1)
    _, output = await kept(store, local, 2)
    (folder / stuck.key).unlink()
    (folder / stuck.key).mkdir()  # a folder cannot be unlinked
    assert await retention.sweep(store, local, NOW + 20) == 1
    assert not (folder / output.key).exists()


async def test_what_cannot_be_deleted_now_is_not_called_gone(store, dead_bucket, bucket, folder):
    task_id, _ = await kept(store, BucketOutputs(bucket, "secret"), 1)
    assert await retention.sweep(store, BucketOutputs(dead_bucket, "secret"), NOW + 20) == 0
    assert not (await store.task(task_id)).outputs_gone
    assert await retention.sweep(store, BucketOutputs(bucket, "secret"), NOW + 20) == 1
    assert await listed(BucketOutputs(bucket, "secret"), LATER) == []


# -- orphaned


async def test_what_a_killed_lane_saved_is_deleted_after_a_day(store, output_store):
    _, shown = await kept(store, output_store, 1)
    dead = await leased(store, 2)
    await output_store.save(folder_of(dead), Result(outputs=PICTURE.outputs, text="text"))
    assert await retention.tidy(store, output_store, time.time() + DAY - 3600) == 0
    assert await retention.tidy(store, output_store, time.time() + DAY + 3600) == 2
    assert await listed(output_store, LATER) == [shown.key]
    assert await retention.tidy(store, output_store, time.time() + DAY + 3600) == 0


async def test_of_two_lanes_of_one_task_the_one_that_completed_is_kept(store, output_store):
    lease = await leased(store, 1)
    await output_store.save(f"{lease.task_id}-00000000deadbeef", PICTURE)
    stored = await output_store.save(folder_of(lease), PICTURE)
    await store.queue.complete(lease, stored, expires_at=LATER, now=NOW)
    assert await retention.tidy(store, output_store, LATER) == 1
    assert await listed(output_store, LATER) == [stored.outputs[0].key]


async def test_outputs_of_failed_held_and_unknown_tasks_are_of_nobody(store, output_store):
    lease = await leased(store, 1)
    await output_store.save(folder_of(lease), PICTURE)
    await store.queue.fail(lease, details="x", error="x", now=NOW)
    held = await settling(store, 2)
    await output_store.save(f"{held.id}-0123456789abcdef", PICTURE)
    (nobodys,) = (await output_store.save("nobody-0123456789abcdef", PICTURE)).outputs
    left = [nobodys.key] if nobodys.key.startswith("s3:") else []  # perhaps of who we are a copy of
    assert await retention.tidy(store, output_store, LATER) == 3 - len(left)
    assert await listed(output_store, LATER) == left


async def test_what_expired_but_is_not_swept_yet_is_left_to_the_sweep(store, output_store):
    await kept(store, output_store, 1, expires_at=NOW)
    assert await retention.tidy(store, output_store, LATER) == 0
    assert await retention.sweep(store, output_store, NOW + 1) == 1


async def test_what_was_called_gone_and_is_still_there_is_deleted(store, output_store):
    task_id, _ = await kept(store, output_store, 1)
    await store.forget_outputs([task_id])
    assert await retention.tidy(store, output_store, LATER) == 1


async def test_outputs_of_many_tasks_are_looked_at_some_at_a_time(store, output_store, monkeypatch):
    asked = []
    shown_outputs = store.shown_outputs

    async def recorded(task_ids):
        asked.append(len(task_ids))
        return await shown_outputs(task_ids)

    monkeypatch.setattr(store, "shown_outputs", recorded)
    completed = [
        (await kept(store, output_store, n, expires_at=LATER))[1].key for n in range(1, 121)
    ]
    for number in range(120):
        await output_store.save(f"nobody{number}-0123456789abcdef", Result(text="x"))
    if isinstance(output_store, DiskOutputs):
        assert await retention.tidy(store, output_store, LATER) == 120
        assert await listed(output_store, LATER) == sorted(completed)
    else:  # what nobody knows in a bucket is left alone
        assert await retention.tidy(store, output_store, LATER) == 0
    assert sum(asked) == 240
    assert max(asked) <= 100


async def test_a_half_written_file_is_deleted_after_a_day(store, local, folder):
    _, shown = await kept(store, local, 1)
    half = folder / "task-9-0123456789abcdef" / "0.partial"
    half.parent.mkdir()
    half.write_bytes(PNG[:9])
    empty = folder / "task-8-0123456789abcdef"
    empty.mkdir()
    long_ago = time.time() - 2 * DAY
    assert await retention.tidy(store, local, time.time()) == 0
    os.utime(half, (long_ago, long_ago))
    os.utime(empty, (long_ago, long_ago))
    await retention.tidy(store, local, time.time())
    assert [path.name for path in folder.iterdir()] == [shown.key.partition("/")[0]]


async def test_tidying_begins_some_time_after_the_start(store, local, folder):
    await local.save(
        "nobody-0123456789abcdef", Result(outputs=(Output(data=b"x", media_type="image/png"),))
    )
    sweeping = retention.sweep_forever(store, local, lambda: LATER, pause_s=0.01)
    sweeper = asyncio.create_task(sweeping)
    async with asyncio.timeout(PATIENCE_S):
        while await listed(local, LATER):
            await asyncio.sleep(0.01)
    sweeper.cancel()
    await asyncio.gather(sweeper, return_exceptions=True)


async def test_a_bucket_that_is_down_does_not_keep_the_disk_untidy(store, dead_bucket, local):
    both = BucketWithFallback(BucketOutputs(dead_bucket, "secret"), local)
    await local.save("nobody-0123456789abcdef", PICTURE)
    with pytest.raises(retention.OutputStoreUnavailable):
        await retention.tidy(store, both, LATER)
    assert await listed(local, LATER) == []
