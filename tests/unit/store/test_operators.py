"""An operator's part of SqliteStore: its connection, and an immutable audit log."""

import asyncio
import re
import sqlite3
import threading

import pytest

from gateway.store import SqliteStore
from gateway_operator.sql.records import OperatorRecords
from tests.store_contract.operators import new_action


def _own_threads(before):
    """Return the threads started after `before`, except those of `asyncio` and of fake servers.

    A server of an earlier test may still be answering a client that is closing.
    """
    others = re.compile(r"asyncio_|.*\(process_request_thread\)$")
    return [one for one in set(threading.enumerate()) - before if not others.match(one.name)]


async def test_a_store_without_sums_has_no_thread_for_them(tmp_path):
    before = set(threading.enumerate())
    async with SqliteStore(tmp_path / "gateway.db") as store:
        await store.ping()
        opened = len(_own_threads(before))
        await store.sum(lambda db: db.execute("SELECT 1").fetchone()[0])
        await OperatorRecords(store).actions(None, 1)
        assert len(_own_threads(before)) == opened + 1
    for thread in _own_threads(before):
        await asyncio.to_thread(thread.join, 20)
    assert _own_threads(before) == []


async def test_a_sum_reads_one_state_of_the_database_while_sales_go_on(store):
    loop_may_go_on, sum_may_end = threading.Event(), threading.Event()

    def count_twice(db):
        counts = [db.execute("SELECT count(*) FROM operator_actions").fetchone()[0]]
        loop_may_go_on.set()
        assert sum_may_end.wait(20)
        counts.append(db.execute("SELECT count(*) FROM operator_actions").fetchone()[0])
        return counts

    summing = asyncio.create_task(store.sum(count_twice))
    assert await asyncio.to_thread(loop_may_go_on.wait, 20)
    # Neither the writer nor the polls' reader waits for the sum.
    await OperatorRecords(store).note(new_action())
    assert await store.known_meta("nothing") is None
    sum_may_end.set()
    assert await summing == [0, 0]
    assert len(await OperatorRecords(store).actions(None, 10)) == 1


@pytest.mark.parametrize(
    "change", ["UPDATE operator_actions SET reason = ''", "DELETE FROM operator_actions"]
)
async def test_an_action_is_never_changed_or_deleted(store, change):
    await OperatorRecords(store).note(new_action())
    with pytest.raises(sqlite3.IntegrityError, match="an action is never"):
        await store._write(lambda db: db.execute(change))
    assert len(await OperatorRecords(store).actions(None, 10)) == 1


async def test_a_sum_that_cannot_open_the_database_does_not_spoil_the_next(store, monkeypatch):
    calls = []

    async def fail_once():
        calls.append(1)
        if len(calls) == 1:
            raise sqlite3.OperationalError("too many open files")
        return await store._open_sums()

    monkeypatch.setattr(store._sums, "_open_reader", fail_once)
    with pytest.raises(sqlite3.OperationalError):
        await OperatorRecords(store).actions(None, 1)
    assert await OperatorRecords(store).actions(None, 1) == []
