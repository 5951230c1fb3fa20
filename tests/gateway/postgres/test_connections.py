"""The number of a node's connections to PostgreSQL."""

import asyncio

import psycopg

from gateway.contracts.nodes import WakeHandlers
from gateway_nodes.postgres.store import PostgresStore
from tests.patience import until

_COUNT = """SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()"""


def hold(db):
    return db.execute("SELECT pg_sleep(0.2)::text").fetchall()


async def test_a_node_has_those_of_its_setting_and_two_more(migrated_url):
    async with PostgresStore(migrated_url, node="a", connections=3) as store:
        store.wakes.start(
            WakeHandlers(on_queued=lambda: None, on_ended=lambda _: None, on_gap=lambda: None)
        )
        await until(lambda: store.wakes.is_live)
        work = [asyncio.create_task(store._short_read(hold)) for _ in range(10)]
        work += [asyncio.create_task(store.sum(hold)) for _ in range(3)]
        found = []
        with psycopg.connect(migrated_url, autocommit=True) as raw:
            while any(not each.done() for each in work):
                found.append(raw.execute(_COUNT).fetchone()[0])
                await asyncio.wait(work, timeout=0.01)
        await asyncio.gather(*work)
    assert max(found) == 3 + 2
