"""A plugin's function of the database: its rights, its transaction and its time."""

import asyncio
import contextlib
import sqlite3
import threading
import time

import pytest

from gateway.errors import StoreUnavailable
from gateway.store.plugin_functions import PluginOwner, find_owner
from gateway.store.sqlite.store import SqliteStore
from tests.patience import until

ACME = PluginOwner("gateway_acme", ("acme_",))
TABLE = "CREATE TABLE acme_notes (id INTEGER PRIMARY KEY, text TEXT)"


@pytest.fixture
async def store(tmp_path):
    async with SqliteStore(tmp_path / "gateway.db") as opened:
        yield opened


async def run(store, *statements, writes=True):
    def work(_, handle):
        return [handle.execute(one).fetchall() for one in statements]

    return await store._run_for_plugin(ACME, work, writes=writes)


async def count_core_rows(store):
    return await store._long_read(
        lambda db: db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    )


async def test_a_plugin_uses_its_own_tables(store):
    await run(store, TABLE, "CREATE INDEX acme_by_text ON acme_notes (text)")
    await run(store, "INSERT INTO acme_notes (text) VALUES ('a'), ('b')")
    await run(store, "UPDATE acme_notes SET text = 'c' WHERE text = 'b'")
    await run(store, "ALTER TABLE acme_notes ADD COLUMN more TEXT")
    (rows,) = await run(store, "SELECT text FROM acme_notes ORDER BY id", writes=False)
    assert [row["text"] for row in rows] == ["a", "c"]
    assert await run(store, "SELECT count(*) FROM tasks JOIN payments ON 1", writes=False)
    await run(store, "DELETE FROM acme_notes", "DROP TABLE acme_notes")


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE claims",
        "DROP INDEX payments_one_use",
        "DELETE FROM claims",
        "INSERT INTO meta (key, value) VALUES ('a', 'b')",
        "UPDATE payments SET state = 'settled'",
        "SELECT value FROM meta",
        "SELECT id FROM tasks WHERE EXISTS (SELECT 1 FROM meta)",
        "CREATE TABLE other (id INTEGER)",
        "CREATE INDEX acme_i ON payments (id)",
        "CREATE UNIQUE INDEX i ON acme_notes (text)",
        "ALTER TABLE payments ADD COLUMN acme TEXT",
        "CREATE TRIGGER acme_t AFTER INSERT ON acme_notes BEGIN DELETE FROM claims; END",
        "CREATE TRIGGER acme_t BEFORE INSERT ON payments BEGIN SELECT RAISE(ABORT, 'no'); END",
        "CREATE VIEW acme_v AS SELECT * FROM meta",
        "CREATE TEMP TABLE payments (id INTEGER)",
        "PRAGMA writable_schema = ON",
        "PRAGMA foreign_keys = OFF",
        "ATTACH DATABASE ':memory:' AS acme_other",
        "VACUUM",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT acme_s",
        "END",
        "/* a */ cOmMiT",
    ],
)
async def test_a_plugin_may_do_nothing_else(store, statement):
    await run(store, TABLE)
    before = await count_core_rows(store)
    with pytest.raises(sqlite3.Error):
        await run(store, "INSERT INTO acme_notes (text) VALUES ('a')", statement)
    assert await count_core_rows(store) == before
    assert await run(store, "SELECT * FROM acme_notes", writes=False) == [[]]


async def test_a_read_writes_nothing(store):
    await run(store, TABLE)
    with pytest.raises(sqlite3.Error):
        await run(store, "INSERT INTO acme_notes (text) VALUES ('a')", writes=False)


def add(db, key):
    db.execute("INSERT INTO meta (key, value) VALUES (?, 'x')", (key,))


def use_as_context(db):
    with db:
        pass


def commit(db):
    db.commit()


def commit_in_sql(db):
    db.execute("CREATE TABLE loose (id INTEGER)")
    db.execute("COMMIT")


def commit_in_script(db):
    db.executescript("COMMIT; BEGIN")


ENDS = [use_as_context, commit, commit_in_sql, commit_in_script]


@pytest.mark.parametrize("function", ENDS)
async def test_a_function_that_ends_its_transaction_breaks_no_batch(store, function):
    sales = [store._write(add, f"before {number}") for number in range(5)]
    bad = store.write(function)
    sales += [store._write(add, f"after {number}") for number in range(5)]
    *done, failed = await asyncio.gather(*sales, bad, return_exceptions=True)
    assert done == [None] * 10
    assert isinstance(failed, Exception)
    tables = "SELECT count(*) FROM sqlite_master WHERE name = 'loose'"
    assert await store._long_read(lambda db: db.execute(tables).fetchone()[0]) == 0


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), StopIteration()])
async def test_a_function_that_raises_anything_is_an_error_of_its_caller(store, error):
    def fail(db):
        raise error

    with pytest.raises(RuntimeError):
        await store.write(fail)
    with pytest.raises(RuntimeError):
        await store.read(fail)
    assert await store.write(lambda db: 5) == 5


async def test_a_function_that_blocks_holds_up_no_sale(store):
    ended, seen, loop = [], asyncio.Event(), asyncio.get_running_loop()

    def block(db):
        db.execute("CREATE TABLE half (id INTEGER)")
        while not ended:
            time.sleep(0.01)
        try:
            db.execute("SELECT 1")
        except StoreUnavailable:
            loop.call_soon_threadsafe(seen.set)

    with pytest.raises(StoreUnavailable):
        await store.write(block)
    tables = "SELECT count(*) FROM sqlite_master WHERE name = 'half'"
    assert await store._write(lambda db: db.execute(tables).fetchone()[0]) == 0
    with pytest.raises(StoreUnavailable):
        await store.write(lambda db: 5)
    ended.append(True)
    await seen.wait()


async def test_sales_take_turns_with_a_plugin_that_always_writes(store):
    """SQLite's own waiting is unfair: a writer without a pause would lock sales out."""
    await run(store, TABLE)
    order, is_over = [], asyncio.Event()

    def write(_, handle):
        order.append("plugin")
        handle.execute("INSERT INTO acme_notes (text) VALUES ('a')")
        time.sleep(0.05)

    async def keep_writing():
        while not is_over.is_set():
            await store._run_for_plugin(ACME, write, writes=True)

    # Each of several callers asks again at once.
    plugin = [asyncio.create_task(keep_writing()) for _ in range(3)]
    try:
        await until(lambda: len(order) >= 3)
        for number in range(5):
            order.append("asked")
            await store._write(add, f"{number}")
            order.append("sold")
    finally:
        is_over.set()
        await asyncio.gather(*plugin)
    waited = [one.partition("sold")[0].count("plugin") for one in " ".join(order).split("asked")]
    # One may begin before the writer wakes, and one before the caller does.
    assert max(waited[1:]) <= 2


@pytest.mark.parametrize("ask", ["read", "write"])
async def test_a_function_that_never_returns_costs_one_thread(store, monkeypatch, ask):
    monkeypatch.setattr("gateway.store.plugin_functions._REST_S", 0.0)
    for connection in (store._plugin_reads, store._plugin_writes):
        connection._limit_s = 0.1
    returned, calls = threading.Event(), []

    def block(db):
        calls.append(1)
        returned.wait()

    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            await getattr(store, ask)(block)
    with pytest.raises(StoreUnavailable):
        await store.write(lambda db: 5)
    assert calls == [1]
    await run(store, TABLE)
    returned.set()
    await until(store._rests._rests["tests"][0][1].done)
    assert await store.write(lambda db: 5) == 5


@pytest.mark.parametrize("limit_s", [0.05, 0.2])
async def test_a_function_that_asks_without_a_pause_is_abandoned(store, limit_s):
    """One statement ends and the next begins, while the transaction is rolled back."""
    store._plugin_writes._limit_s = limit_s
    await run(store, TABLE)
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"

    def ask(_, handle):
        try:
            handle.execute("INSERT INTO acme_notes (text) VALUES ('a')")
            while True:
                with contextlib.suppress(sqlite3.Error):
                    for _ in handle.execute(endless):
                        pass
        finally:
            loop.call_soon_threadsafe(ended.set)

    with pytest.raises(StoreUnavailable):
        await store._run_for_plugin(ACME, ask, writes=True)
    count = "SELECT count(*) FROM acme_notes"
    assert await store._write(lambda db: db.execute(count).fetchone()[0]) == 0
    await ended.wait()


async def test_a_statement_without_an_end_is_interrupted(store):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    with pytest.raises(StoreUnavailable):
        await run(store, endless)
    await store.ping()


async def test_a_caller_that_leaves_does_not_end_the_write(store):
    await run(store, TABLE)
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def work(_, handle):
        loop.call_soon_threadsafe(begun.set)
        time.sleep(0.1)
        handle.execute("INSERT INTO acme_notes (text) VALUES ('kept')")

    caller = asyncio.create_task(store._run_for_plugin(ACME, work, writes=True))
    await begun.wait()
    caller.cancel()
    (rows,) = await run(store, "SELECT text FROM acme_notes")
    assert [row["text"] for row in rows] == ["kept"]


def test_functions_of_the_gateway_have_no_owner():
    from gateway.store import payments
    from gateway_operator.sql import sessions

    assert find_owner(payments.reserve) is None
    assert find_owner(sessions.insert) is None
    assert find_owner(lambda db: None) == PluginOwner("tests", None)
