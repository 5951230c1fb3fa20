"""Reads of one row: on the loop while the disk is fast, in the thread while it is not."""

import contextlib
import sqlite3
import threading

import pytest

from gateway.store import SqliteStore
from gateway.store.sqlite.connection import RowReads
from gateway_testing.facts import queued
from tests.migrated_databases import put_database


class SlowClock:
    """A clock that a read advances."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def store(tmp_path):
    async with SqliteStore(put_database(tmp_path / "gateway.db")) as opened:
        yield opened


@pytest.fixture
async def slow(store, tmp_path):
    """Row reads whose clock is `slow.clock`."""
    reads = RowReads(tmp_path / "gateway.db", store._reads, SlowClock())
    reads.clock = reads._clock
    yield reads
    reads.close()


def thread_of(db):
    db.execute("SELECT 1 FROM tasks").fetchall()
    return threading.current_thread()


async def test_a_row_is_read_as_the_last_answered_write_left_it(store):
    for number in range(1, 20):
        task = await queued(store, number)
        assert await store.task(task.id) == task
    assert await store.task("unknown") is None


async def test_a_quick_read_stays_on_the_loop(slow):
    assert await slow.run(thread_of) is threading.current_thread()


@pytest.mark.parametrize(("took_s", "pause_s"), [(0.1, 5), (0.5, 25), (30, 60)])
async def test_a_slow_disk_holds_the_loop_for_a_fiftieth_of_the_time(slow, took_s, pause_s):
    def wait(db):
        slow.clock.now += took_s if threading.current_thread() is on_loop else 0
        return thread_of(db)

    on_loop = threading.current_thread()
    assert await slow.run(wait) is on_loop
    slow.clock.now += pause_s * 0.99
    assert await slow.run(wait) is not on_loop
    slow.clock.now += pause_s * 0.02
    assert await slow.run(wait) is on_loop
    assert await slow.run(wait) is not on_loop


async def test_what_is_locked_is_read_by_the_thread_which_can_wait(slow):
    on_loop = threading.current_thread()

    def fail_on_loop(db):
        if threading.current_thread() is on_loop:
            raise sqlite3.OperationalError("database is locked")
        return thread_of(db)

    assert await slow.run(fail_on_loop) is not on_loop


async def test_what_stays_wrong_is_raised(slow):
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        await slow.run(lambda db: db.execute("SELECT 1 FROM nowhere"))


async def test_the_loops_connection_cannot_write(slow):
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        slow._db.execute("DELETE FROM tasks")


async def test_a_read_leaves_nothing_open_that_keeps_the_log_from_being_emptied(store, tmp_path):
    task = await queued(store, 1)
    assert await store.task(task.id) == task
    with contextlib.closing(sqlite3.connect(tmp_path / "gateway.db")) as other:
        (busy, _, _) = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert busy == 0
