"""SqliteStore: the contract of every store, and SQLite's own pitfalls."""

import asyncio
import sqlite3
import threading

import pytest

from gateway.domain import Attachment, GenerationRequest
from gateway.errors import SettingsError
from gateway.store import SqliteStore
from gateway.store.sqlite import connection
from gateway.store.sqlite import store as sqlite
from gateway_testing.facts import (
    NOW,
    leased,
    paying,
    queued,
    reserved,
)
from tests.migrated_databases import put_database
from tests.store_contract.contract import StoreContract
from tests.unit.store.conftest import on_writer


class TestSqliteStore(StoreContract):
    @pytest.fixture
    async def store(self, path):
        async with SqliteStore(put_database(path)) as opened:
            yield opened


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
