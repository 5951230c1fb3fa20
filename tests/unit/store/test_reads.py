"""Concurrent small reads: the result of each caller."""

import asyncio
import sqlite3

import pytest

from gateway.store import SqliteStore
from gateway_testing.facts import queued


@pytest.fixture(autouse=True)
def _in_the_thread(monkeypatch):
    """Tasks are read in the thread, as after a slow read."""
    monkeypatch.setattr(SqliteStore, "_read_row", SqliteStore._short_read)


async def test_of_many_reads_at_once_each_gets_its_own_answer(store):
    tasks = [await queued(store, number) for number in range(1, 6)]
    ids = [task.id for task in tasks] * 30
    found = await asyncio.gather(*(store.task(task_id) for task_id in [*ids, "unknown"]))
    assert found == tasks * 30 + [None]


async def test_reads_at_once_share_hops_to_the_database(store, monkeypatch):
    hops = []
    run = store._reader.run

    async def counted(function):
        hops.append(function)
        return await run(function)

    monkeypatch.setattr(store._reader, "run", counted)
    await asyncio.gather(*(store.task("unknown") for _ in range(641)))
    # The first goes alone, and the others in groups of 64.
    assert len(hops) == 11


async def test_a_read_that_fails_harms_no_neighbour(store):
    task = await queued(store, 1)

    def fail(db):
        db.execute("SELECT nothing FROM nowhere")

    found = await asyncio.gather(
        store.task(task.id), store._reads.run(fail), store.task(task.id), return_exceptions=True
    )
    assert isinstance(found[1], sqlite3.OperationalError)
    assert found[::2] == [task, task]


async def test_a_caller_that_goes_away_harms_no_neighbour(store):
    task = await queued(store, 1)
    for leaver in range(3):
        callers = [asyncio.create_task(store.task(task.id)) for _ in range(3)]
        await asyncio.sleep(0)
        callers[leaver].cancel()
        found = await asyncio.gather(*callers, return_exceptions=True)
        assert [one == task for one in found] == [number != leaver for number in range(3)]
        assert await store.task(task.id) == task


async def test_a_read_sees_what_was_written_before_it(store):
    for number in range(1, 50):
        task, _ = await asyncio.gather(queued(store, number), store.task("unknown"))
        assert await store.task(task.id) == task


async def test_a_closed_store_answers_with_an_error(tmp_path):
    async with SqliteStore(tmp_path / "other.db") as closed:
        pass
    with pytest.raises(ValueError, match="Connection closed"):
        await closed.task("unknown")
    # A background task may ask so late; nothing would close a new connection.
    with pytest.raises(ValueError, match="store is closed"):
        await closed.sum(lambda db: db.execute("SELECT 1").fetchone())
    async with closed:
        assert tuple(await closed.sum(lambda db: db.execute("SELECT 1").fetchone())) == (1,)
