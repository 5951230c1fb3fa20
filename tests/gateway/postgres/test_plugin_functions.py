"""A plugin's function on PostgreSQL: its rights, its transaction and its time."""

import asyncio
import contextlib
import threading

import psycopg
import pytest

from gateway.errors import StoreUnavailable
from gateway.store.plugin_functions import PluginOwner
from gateway_nodes.postgres.plugin_rights import NotItsOwn
from gateway_nodes.postgres.store import PostgresStore
from tests.patience import until
from tests.plugin_tables import install_tables

__all__ = ["install_tables"]

ACME = PluginOwner("gateway_acme", ("acme_",))


def do(*statements):
    return lambda _, handle: [handle.execute(one) for one in statements]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM meta",
        "UPDATE meta SET value = 'a'",
        "INSERT INTO meta (key, value) VALUES ('a', 'b')",
        "DROP TABLE claims CASCADE",
        "DROP INDEX payments_one_use",
        "TRUNCATE claims CASCADE",
        "CREATE TABLE other (id INTEGER)",
        "CREATE INDEX acme_i ON payments (id)",
        "ALTER TABLE payments ADD COLUMN acme TEXT",
        "COMMIT",
        "ROLLBACK",
        "COMMIT; BEGIN",
    ],
)
async def test_a_function_changes_its_own_tables_only(database_url, install_tables, statement):
    install_tables({"0001_orders.sql": "CREATE TABLE acme_notes (text TEXT);"})
    async with PostgresStore(database_url) as store:
        add = "INSERT INTO acme_notes VALUES ('a')"
        await store._run_for_plugin(ACME, do(add), writes=True)
        with pytest.raises(NotItsOwn):
            await store._run_for_plugin(ACME, do(statement), writes=True)
        with pytest.raises(psycopg.Error):
            await store._run_for_plugin(ACME, do(add), writes=False)
        assert await store.write(lambda db: db.execute("SELECT 5").fetchone()[0]) == 5
    assert read(database_url, "SELECT count(*) FROM acme_notes") == [(1,)]
    assert read(database_url, "SELECT to_regclass('claims') IS NULL") == [(False,)]


ENDS = [
    ("COMMIT", "DELETE FROM meta WHERE key = 'x'", "BEGIN"),
    ("DELETE FROM meta WHERE key = 'x'", "COMMIT"),
    ("DELETE FROM meta WHERE key = 'x'", "COMMIT AND CHAIN"),
    ("DELETE FROM meta WHERE key = 'x'", "PREPARE TRANSACTION 'x'"),
    ("ROLLBACK", "DELETE FROM meta WHERE key = 'x'", "BEGIN"),
    ("ROLLBACK; DELETE FROM meta WHERE key = 'x'; COMMIT; BEGIN",),
    ("COMMIT; DELETE FROM meta WHERE key = 'x'; BEGIN",),
    ("DO 'BEGIN DELETE FROM meta WHERE key = ''x''; COMMIT; END'",),
    ("SET TRANSACTION READ WRITE", "DELETE FROM meta WHERE key = 'x'"),
]


@pytest.mark.parametrize("is_stubborn", [False, True])
@pytest.mark.parametrize("statements", ENDS)
@pytest.mark.parametrize("writes", [True, False])
async def test_a_function_commits_nothing_itself(
    store, database_url, statements, writes, is_stubborn
):
    with psycopg.connect(database_url) as raw:
        raw.execute("INSERT INTO meta (key, value) VALUES ('x', 'y')")

    def work(_, handle):
        for statement in statements:
            try:
                handle.execute(statement)
            except (psycopg.Error, NotItsOwn):
                if not is_stubborn:
                    raise

    with contextlib.suppress(psycopg.Error, NotItsOwn):
        await store._run_for_plugin(ACME, work, writes=writes)
    assert read(database_url, "SELECT value FROM meta WHERE key = 'x'") == [("y",)]
    add = do("INSERT INTO acme_notes VALUES ('b')")
    await store._run_for_plugin(ACME, add, writes=True)
    assert read(database_url, "SELECT text FROM acme_notes") == [("a",), ("b",)]


def read(database_url, sql):
    with psycopg.connect(database_url) as raw:
        return raw.execute(sql).fetchall()


@pytest.fixture
async def store(database_url, install_tables):
    install_tables({"0001_orders.sql": "CREATE TABLE acme_notes (text TEXT);"})
    async with PostgresStore(database_url, connections=1) as opened:
        await opened._run_for_plugin(ACME, do("INSERT INTO acme_notes VALUES ('a')"), writes=True)
        yield opened


@pytest.fixture
def short_limit(store):
    """A function has a fifth of a second; elsewhere a busy machine may take that long."""
    store._plugins._limit_s = 0.2


@pytest.fixture
def returned():
    """Set when a plugin's function may return, which is at the end of the test at last."""
    event = threading.Event()
    yield event
    event.set()


@pytest.mark.parametrize("writes", [True, False])
@pytest.mark.usefixtures("short_limit")
async def test_a_function_that_never_returns_costs_one_thread(store, monkeypatch, returned, writes):
    monkeypatch.setattr("gateway.store.plugin_functions._REST_S", 0.0)
    calls = []

    def block(db):
        calls.append(1)
        returned.wait()

    run = store.write if writes else store.read
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            await run(block)
        await store.ping()
    assert calls == [1]
    store._plugins._limit_s = 30
    # Another plugin goes on.
    await store._run_for_plugin(ACME, do("SELECT text FROM acme_notes"), writes=writes)
    returned.set()
    await until(lambda: not store._plugins._left)
    assert await run(lambda db: 5) == 5


@pytest.mark.usefixtures("short_limit")
async def test_many_plugins_that_never_return_take_no_connection_of_sales(store, returned):
    def block(_, handle):
        handle.execute("SELECT 1")
        returned.wait()

    owners = [PluginOwner(f"plugin{number}", ()) for number in range(6)]
    calls = [store._run_for_plugin(owner, block, writes=True) for owner in owners]
    for answer in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(answer, StoreUnavailable)
    await store.ping()


async def test_a_stop_does_not_wait_for_a_function_that_never_returns(database_url, returned):
    async with PostgresStore(database_url) as store:
        store._plugins._limit_s = 0.2
        with pytest.raises(StoreUnavailable):
            await store.write(lambda db: returned.wait())
    assert not returned.is_set()


@pytest.mark.usefixtures("short_limit")
async def test_a_function_that_returns_late_is_rolled_back(store, database_url, returned):
    def change(_, handle):
        handle.execute("UPDATE acme_notes SET text = 'late'")
        returned.wait()

    with pytest.raises(StoreUnavailable):
        await store._run_for_plugin(ACME, change, writes=True)
    # Its locks are free, although it has not returned.
    other = PluginOwner("gateway_acme_2", ("acme_",))
    store._plugins._limit_s = 30
    await store._run_for_plugin(other, do("UPDATE acme_notes SET text = 'b'"), writes=True)
    returned.set()
    await until(lambda: not store._plugins._left)
    assert read(database_url, "SELECT text FROM acme_notes") == [("b",)]


@pytest.mark.usefixtures("short_limit")
async def test_a_function_is_not_committed_if_its_session_goes_on(store, database_url, returned):
    """A server may refuse to end a session."""

    async def refuse(process_id):
        raise psycopg.errors.InsufficientPrivilege("no")

    store._plugins._end_session = refuse

    def change(_, handle):
        handle.execute("UPDATE acme_notes SET text = 'late'")
        returned.wait()

    with pytest.raises(StoreUnavailable):
        await store._run_for_plugin(ACME, change, writes=True)
    returned.set()
    await until(lambda: not store._plugins._left)
    assert read(database_url, "SELECT text FROM acme_notes") == [("a",)]


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), StopIteration()])
async def test_a_function_that_raises_anything_is_an_error_of_its_caller(store, error):
    def fail(db):
        raise error

    for run in (store.write, store.read):
        with pytest.raises(RuntimeError):
            await run(fail)
    assert await store.write(lambda db: 5) == 5
