"""SqliteStore: the contract of every store, and SQLite's own pitfalls."""

import asyncio
import contextlib
import sqlite3
import threading

import pytest

from gateway.domain import Attachment, GenerationRequest, Task
from gateway.errors import ExecutionError, SettingsError, TxAlreadyUsed
from gateway.store import SqliteStore
from gateway.store.sqlite import connection
from gateway.store.sqlite import store as sqlite
from gateway_testing.facts import (
    NOW,
    authorization,
    key_of,
    leased,
    new_task,
    paying,
    queued,
    reserved,
    transfer,
    tx_hash,
)
from tests.migrated_databases import put_database
from tests.store_contract.contract import StoreContract


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data" / "gateway.db"


@pytest.fixture
async def store(path):
    async with SqliteStore(put_database(path)) as opened:
        yield opened


class TestSqliteStore(StoreContract):
    @pytest.fixture
    async def store(self, path):
        async with SqliteStore(put_database(path)) as opened:
            yield opened


async def on_writer(store, function):
    return await store._writer._connection.run(function)


async def value(store, sql):
    return await on_writer(store, lambda db: db.execute(sql).fetchone()[0])


# -- opening


@pytest.mark.parametrize(
    ("pragma", "expected"),
    [("synchronous", 2), ("journal_mode", "wal"), ("foreign_keys", 1), ("busy_timeout", 5000)],
)
async def test_a_commit_survives_a_power_cut(store, pragma, expected):
    assert await value(store, f"PRAGMA {pragma}") == expected
    ((read,),) = await store._reader.run(lambda db: db.execute(f"PRAGMA {pragma}").fetchall())
    assert read == expected


async def test_every_table_is_strict(store):
    loose = await on_writer(
        store,
        lambda db: db.execute(
            "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
            " AND strict = 0 AND name NOT LIKE 'sqlite_%'"
        ).fetchall(),
    )
    assert loose == []


async def test_an_empty_folder_becomes_a_database_and_opens_again(path):
    async with SqliteStore(path) as first:
        task = await queued(first)
        assert await value(first, "PRAGMA user_version") >= 1
        assert await value(first, "PRAGMA integrity_check") == "ok"
    async with SqliteStore(path) as second:
        assert await second.task(task.id) == task


async def test_a_newer_database_is_refused_in_one_sentence(path):
    async with SqliteStore(path) as store:
        await on_writer(store, _make_newer)
    with pytest.raises(SettingsError, match="99"):
        async with SqliteStore(path):
            pass


def _make_newer(db):
    db.execute("UPDATE meta SET value = '98' WHERE key = 'readable_by'")
    db.execute("PRAGMA user_version = 99").fetchall()


def _no_folder(path):
    path.parent.write_text("a file")


def _a_folder(path):
    path.mkdir(parents=True)


def _no_database(path):
    path.parent.mkdir()
    path.write_bytes(b"this is no database, whatever it is called" * 100)


async def _has_no_thread_left(before):
    """Wait for aiosqlite's threads, which end a moment after their connections."""
    for thread in set(threading.enumerate()) - before:
        # Threads of `asyncio.to_thread` stay for the next call.
        if not thread.name.startswith("asyncio_"):
            await asyncio.to_thread(thread.join, 20)
            assert not thread.is_alive()


@pytest.mark.parametrize("spoil", [_no_folder, _a_folder, _no_database])
async def test_what_cannot_be_opened_is_said_in_one_sentence(path, spoil):
    spoil(path)
    before = set(threading.enumerate())
    with pytest.raises(SettingsError, match="GATEWAY_DATA_DIR"):
        async with SqliteStore(path):
            pass
    await _has_no_thread_left(before)


async def test_a_start_that_fails_leaves_no_thread_to_keep_the_process_alive(path, monkeypatch):
    connect = sqlite._connect

    calls = []

    def second_fails(path):
        calls.append(path)
        if len(calls) == 3:
            raise sqlite3.OperationalError("too many open files")
        return connect(path)

    monkeypatch.setattr(sqlite, "_connect", second_fails)
    before = set(threading.enumerate())
    failing = SqliteStore(path)
    with pytest.raises(SettingsError):
        await failing.__aenter__()
    await _has_no_thread_left(before)


async def test_a_start_without_the_loops_connection_fails_as_any_other(path, monkeypatch):
    def fail(_):
        raise sqlite3.OperationalError("too many open files")

    monkeypatch.setattr(connection, "_connect", fail)
    before = set(threading.enumerate())
    with pytest.raises(SettingsError, match="too many open files"):
        await SqliteStore(path).__aenter__()
    await _has_no_thread_left(before)


async def test_rows_are_read_until_the_last_write_is_answered(path):
    store, begun, may_end = SqliteStore(path), threading.Event(), threading.Event()

    def wait(_):
        begun.set()
        return may_end.wait(60)

    await store.__aenter__()
    task = await queued(store, 1)
    writing = asyncio.create_task(store._write(wait))
    await asyncio.to_thread(begun.wait)
    closing = asyncio.create_task(store.__aexit__(None, None, None))
    try:
        for _ in range(20):
            await asyncio.sleep(0)
        assert not writing.done()
        assert await store.task(task.id) == task
    finally:
        may_end.set()
        await closing
    assert await writing


# -- refusals of the database


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE payments SET state = 'reserved'",
        "UPDATE payments SET state = 'refunded'",
        "UPDATE payments SET paid_tx = NULL",
        "UPDATE payments SET paid_units = 1",
        "UPDATE tasks SET status = 'completed', result = '{}'",
        "UPDATE tasks SET status = 'held'",
        "DELETE FROM claims",
        "UPDATE claims SET key = 'tx:0x0'",
        "DELETE FROM payments",
        """INSERT INTO payments (flow, state, request_hash, price_units, payer, search_from_block,
            created_at, updated_at) VALUES ('direct', 'settled', '', 1, '', 0, 0, 0)""",
        """INSERT INTO tasks (id, payment_id, slug, capability, status, request, due_at, created_at)
            VALUES ('x', 999, '', '', 'queued', '', 0, 0)""",
    ],
)
async def test_the_database_itself_refuses(store, sql):
    await queued(store)
    before = await store.counts()
    with pytest.raises(sqlite3.IntegrityError):
        await store._writer.run(lambda db: db.execute(sql))
    assert await store.counts() == before


async def test_a_task_runs_only_for_money_that_arrived(store):
    await reserved(store)
    with pytest.raises(sqlite3.IntegrityError, match="without a settled payment"):
        await store._writer.run(lambda db: db.execute("UPDATE tasks SET status = 'queued'"))


async def test_every_change_of_a_payment_leaves_a_trace(store):
    task = await reserved(store)
    await store.begin_settling(task.payment.id, None, now=NOW + 1)
    await store.begin_settling(task.payment.id, None, now=NOW + 2)
    await store.settle(task.payment.id, paying(task), now=NOW + 3)
    rows = await store._rows("SELECT old_state, new_state, at FROM payment_events ORDER BY id")
    assert [tuple(row) for row in rows] == [
        (None, "reserved", NOW),
        ("reserved", "settling", NOW + 1),
        ("settling", "settled", NOW + 3),
    ]


async def test_a_file_is_kept_as_long_as_its_task_is_unfinished(store):
    request = GenerationRequest(attachment=Attachment(name="a.pdf", data=b"%PDF"))
    lease = await leased(store, request=request)
    assert len(await store._rows("SELECT * FROM task_files")) == 1
    await store.queue.fail(lease, details="x", error="x", now=NOW)
    task = await reserved(store, 5, request=request)
    await store.release(task.payment.id, now=NOW)
    assert await store._rows("SELECT * FROM task_files") == []


# -- group commit


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


# -- a full disk


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
