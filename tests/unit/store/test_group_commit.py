"""Writes that share a commit, and a disk that is full."""

import asyncio
import contextlib
import sqlite3

import pytest

from gateway.domain import Attachment, GenerationRequest, Task
from gateway.errors import ExecutionError, TxAlreadyUsed
from gateway.store import SqliteStore
from gateway_testing.facts import (
    authorization,
    key_of,
    new_task,
    queued,
    reserved,
    transfer,
    tx_hash,
)
from tests.unit.store.conftest import on_writer
from tests.unit.store.test_sqlite_store import value


async def test_many_transactions_share_a_commit(store):
    statements = []
    await on_writer(store, lambda db: db.set_trace_callback(statements.append))
    tasks = await asyncio.gather(*(queued(store, tx) for tx in range(1, 51)))
    assert statements.count("COMMIT") <= 3
    assert len({task.id for task in tasks}) == 50


async def test_a_failing_transaction_harms_no_neighbour(store):
    def spoil(db):
        db.execute("INSERT INTO meta (key, value) VALUES ('half', 'written')")
        raise KeyError("spoilt")

    await queued(store, 1)
    outcomes = await asyncio.gather(
        queued(store, 2),
        store._writer.run(spoil),
        queued(store, 1),
        queued(store, 3),
        return_exceptions=True,
    )
    assert isinstance(outcomes[1], KeyError)
    assert isinstance(outcomes[2], TxAlreadyUsed)
    assert (await store.counts())["tasks"] == {"queued": 3}
    assert await store.known_meta("half") is None


@pytest.mark.parametrize("refused", [1, 2])
async def test_a_write_that_is_refused_costs_its_neighbours_nothing(store, refused):
    """A client may send a transaction that paid already, alone or beside others."""
    await queued(store, 1)
    statements = []
    await on_writer(store, lambda db: db.set_trace_callback(statements.append))
    callers = [queued(store, 1) for _ in range(refused)] + [queued(store, tx) for tx in (2, 3)]
    outcomes = await asyncio.gather(*callers, return_exceptions=True)
    assert [type(one) for one in outcomes] == [TxAlreadyUsed] * refused + [Task] * 2
    assert sum("INTO tasks" in statement for statement in statements) == 2


async def test_a_write_that_fails_halfway_leaves_what_others_wrote_once(store):
    def count(db):
        db.execute("INSERT INTO meta VALUES ('n', '1') ON CONFLICT DO UPDATE SET value = value + 1")
        return db.execute("SELECT value FROM meta WHERE key = 'n'").fetchone()[0]

    def spoil(db):
        count(db)
        raise KeyError("spoilt")

    writes = [count, spoil, count, spoil, count]
    outcomes = await asyncio.gather(
        *(store._writer.run(write) for write in writes), return_exceptions=True
    )
    assert [outcomes[number] for number in (0, 2, 4)] == ["1", "2", "3"]
    assert [type(outcomes[number]) for number in (1, 3)] == [KeyError, KeyError]
    assert await store.known_meta("n") == "3"


@pytest.mark.parametrize(
    "error", [StopIteration("odd"), sqlite3.OperationalError("without a code"), MemoryError()]
)
async def test_no_transaction_ends_the_writer(store, error):
    def spoil(db):
        raise error

    try:
        outcomes = await asyncio.wait_for(
            asyncio.gather(store._writer.run(spoil), queued(store), return_exceptions=True), 1
        )
        assert isinstance(outcomes[0], Exception)
        await store.ping()
    finally:
        if store._writer._task.done():
            store._writer._task = None  # dead: closing would wait for it for ever


async def test_a_cancelled_callers_transaction_is_committed_all_the_same(store):
    caller = asyncio.create_task(reserved(store))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await store.ping()
    assert await store.find_claim(key_of(authorization())) is not None


async def test_what_was_asked_before_closing_is_written(path):
    store = await SqliteStore(path).__aenter__()
    callers = [asyncio.create_task(queued(store, tx)) for tx in range(1, 201)]
    await asyncio.sleep(0)
    await store.__aexit__(None, None, None)
    await asyncio.gather(*callers)
    async with SqliteStore(path) as again:
        assert (await again.counts())["tasks"] == {"queued": 200}
    with pytest.raises(RuntimeError):
        await store.ping()


async def test_a_commit_that_fails_is_told_to_everybody_in_it(store, monkeypatch):
    """A deferred foreign key makes COMMIT itself fail."""

    def spoil(db):
        db.execute("PRAGMA defer_foreign_keys = ON")
        db.execute("INSERT INTO claims (key, payment_id) VALUES ('tx:none', 999)")

    outcomes = await asyncio.gather(
        reserved(store), store._writer.run(spoil), return_exceptions=True
    )
    assert all(isinstance(outcome, sqlite3.IntegrityError) for outcome in outcomes)
    assert await store.counts() == {"tasks": {}, "payments": {}}
    await reserved(store)


async def test_what_was_answered_is_in_the_file_for_any_reader(store, path):
    task = await queued(store)
    with contextlib.closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT id FROM tasks").fetchall() == [(task.id,)]
    assert await store.task(task.id) == task


async def test_another_process_that_writes_is_waited_for(store, path):
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    with contextlib.closing(other):
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(queued(store))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        other.execute("COMMIT")
        await waiting


@pytest.fixture
async def full(store):
    """A store whose file cannot grow any more."""
    await store.ping()
    pages = await value(store, "PRAGMA page_count")
    await on_writer(store, lambda db: db.execute(f"PRAGMA max_page_count = {pages}").fetchall())
    return store


LARGE = GenerationRequest(attachment=Attachment(name="a.pdf", data=b"x" * 300_000))


async def test_a_full_disk_is_an_execution_error_and_nothing_is_half_written(full):
    signed = authorization()
    with pytest.raises(ExecutionError):
        await full.reserve(new_task(request=LARGE), signed, key_of(signed), 0)
    with pytest.raises(ExecutionError):
        await full.accept_direct(new_task(request=LARGE), tx_hash(1), [transfer()], None)
    assert await full.counts() == {"tasks": {}, "payments": {}}
    assert await full.find_claim(key_of(signed)) is None
    assert await value(full, "PRAGMA integrity_check") == "ok"


async def test_on_a_full_disk_nobody_is_told_what_is_not_durable(full, path):
    requests = [LARGE if nonce == 2 else GenerationRequest() for nonce in range(5)]
    callers = [reserved(full, nonce, request=asked) for nonce, asked in enumerate(requests)]
    outcomes = await asyncio.gather(*callers, return_exceptions=True)
    assert isinstance(outcomes[2], ExecutionError)
    with contextlib.closing(sqlite3.connect(path)) as other:
        there = {row[0] for row in other.execute("SELECT key FROM claims")}
    for nonce, outcome in enumerate(outcomes):
        was_accepted = not isinstance(outcome, Exception)
        assert was_accepted == (key_of(authorization(nonce)) in there)


async def test_where_there_is_room_again_it_writes_again(full):
    with pytest.raises(ExecutionError):
        await queued(full, request=LARGE)
    await on_writer(full, lambda db: db.execute("PRAGMA max_page_count = 1000000").fetchall())
    await queued(full, request=LARGE)
