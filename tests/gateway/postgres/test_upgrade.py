"""A new release changes the schema while nodes of the release before run on it."""

import asyncio

import psycopg
import pytest

from gateway.errors import SettingsError
from gateway_nodes.postgres import migrations
from gateway_nodes.postgres.locks import lock_number
from gateway_nodes.postgres.pool import Pool
from gateway_nodes.postgres.store import PostgresStore

_NEWEST = migrations.migrations()[-1][0]
_NEXT = _NEWEST + 1
_ADDS = "ALTER TABLE sent_transactions ADD COLUMN of_tomorrow TEXT;"
_READ = "SELECT * FROM sent_transactions WHERE payment_id = ?"
# psycopg prepares a statement after this many runs.
_TIMES = 6


@pytest.fixture
def next_release(monkeypatch):
    """Give the gateway one more migration, like the next release, and remove it again."""
    present = migrations.migrations

    def become(sql=_ADDS, *, readable_by=_NEWEST):
        noted = f"UPDATE meta SET value = '{readable_by}' WHERE key = 'readable_by';"
        monkeypatch.setattr(migrations, "migrations", lambda: [*present(), (_NEXT, sql + noted)])

    become.undo = lambda: monkeypatch.setattr(migrations, "migrations", present)
    return become


async def start(database_url):
    async with PostgresStore(database_url, node="new") as store:
        await store.ping()


def version_of(database_url):
    with psycopg.connect(database_url) as raw:
        return migrations.version_of(raw)


@pytest.mark.parametrize("how", ["read", "read_one_state", "write"])
async def test_statements_from_before_the_change_still_run(database_url, next_release, how):
    await start(database_url)
    pool = Pool(database_url, "old", 1)

    async def run(sql=_READ):
        return await getattr(pool, how)(lambda db: db.execute(sql, (1,)).fetchall())

    try:
        for _ in range(_TIMES):
            await run()
        next_release()
        await start(database_url)
        assert await run() == []
    finally:
        await pool.close()


async def test_the_release_before_starts_on_what_only_adds(database_url, next_release):
    next_release()
    await start(database_url)
    next_release.undo()
    await start(database_url)
    assert version_of(database_url) == _NEXT


async def test_a_change_that_older_nodes_cannot_read_waits_until_they_are_stopped(
    database_url, next_release
):
    async with PostgresStore(database_url, node="old") as old:
        await old.nodes.register(now=await old.nodes._read(_clock))
        next_release(readable_by=_NEXT)
        with pytest.raises(SettingsError, match="some run: old"):
            await start(database_url)
        assert version_of(database_url) == _NEWEST
        await old.nodes.unregister()
    await start(database_url)
    assert version_of(database_url) == _NEXT


def _clock(db):
    return db.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()[0]


async def test_a_change_gives_way_to_who_reads_the_table(database_url, next_release, monkeypatch):
    await start(database_url)
    next_release()
    monkeypatch.setattr(migrations, "_LOCK_MS", 50)
    monkeypatch.setattr(migrations, "_PAUSE_S", 0.2)
    with psycopg.connect(database_url) as reader:
        reader.execute("SELECT * FROM sent_transactions")
        starting = asyncio.create_task(start(database_url))
        with psycopg.connect(database_url) as other:
            await _until_one_waits(other)
            # While the migration waits for its lock, others' reads queue behind it; it gives way to
            # them.
            other.execute("SELECT * FROM sent_transactions")
        assert not starting.done()
    await starting
    assert version_of(database_url) == _NEXT


async def _until_one_waits(raw):
    waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'"
    while not raw.execute(waits).fetchone()[0]:
        raw.rollback()
        await asyncio.sleep(0.005)


async def test_tables_in_use_for_minutes_are_one_sentence(database_url, next_release, monkeypatch):
    await start(database_url)
    next_release()
    monkeypatch.setattr(migrations, "_LOCK_MS", 50)
    monkeypatch.setattr(migrations, "_TIMEOUT_S", 0.0)
    with psycopg.connect(database_url) as reader:
        reader.execute("SELECT * FROM sent_transactions")
        with pytest.raises(SettingsError, match="long queries"):
            await start(database_url)
    assert version_of(database_url) == _NEWEST


async def test_two_changes_of_the_schema_at_once_are_one(database_url, next_release):
    await start(database_url)
    next_release()
    await asyncio.gather(*(start(database_url) for _ in range(4)))
    assert version_of(database_url) == _NEXT


async def test_a_node_does_not_wait_for_ever_for_another_that_changes_the_schema(
    database_url, monkeypatch
):
    monkeypatch.setattr(migrations, "_TIMEOUT_S", 0.05)
    with psycopg.connect(database_url) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number("migrate"),))
        with pytest.raises(SettingsError, match="Another node has been"):
            await start(database_url)
    await start(database_url)
