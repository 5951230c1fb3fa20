"""`gateway migrate-store` with a plugin's own tables."""

import asyncio

import psycopg

from gateway.store import SqliteStore
from tests.plugin_tables import ORDERS, install_tables

__all__ = ["install_tables"]


async def _sell_with_plugin(path):
    async with SqliteStore(path) as store:
        await store.write(
            lambda db: db.execute("INSERT INTO acme_orders VALUES ('task-done', 'a parcel')")
        )


def test_the_rows_of_a_plugin_move_as_well(run, path, database_url, install_tables):
    install_tables({"0001_orders.sql": ORDERS})
    asyncio.run(_sell_with_plugin(path))
    told = run()
    assert told.exit_code == 0, told.output
    with psycopg.connect(database_url) as db:
        assert db.execute("SELECT * FROM acme_orders").fetchall() == [("task-done", "a parcel")]
        assert db.execute("SELECT * FROM plugin_schemas").fetchall() == [("acme", 1)]


def test_rows_of_a_plugin_that_is_not_installed_stop_the_move(run, path, install_tables):
    install_tables({"0001_orders.sql": ORDERS})
    asyncio.run(_sell_with_plugin(path))
    install_tables({})
    told = run()
    assert (told.exit_code, "has no table acme_orders" in told.output) == (1, True), told.output
    asyncio.run(_open(path))


async def _open(path):
    async with SqliteStore(path):
        pass
