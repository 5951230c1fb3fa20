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
    result = run()
    assert result.exit_code == 0, result.output
    with psycopg.connect(database_url) as db:
        assert db.execute("SELECT * FROM acme_orders").fetchall() == [("task-done", "a parcel")]
        assert ("acme", 1) in db.execute("SELECT * FROM plugin_schemas").fetchall()


def test_rows_of_a_plugin_that_is_not_installed_stop_the_move(run, path, install_tables):
    install_tables({"0001_orders.sql": ORDERS})
    asyncio.run(_sell_with_plugin(path))
    install_tables({})
    result = run()
    assert (result.exit_code, "has no table acme_orders" in result.output) == (1, True), (
        result.output
    )
    asyncio.run(_open(path))


async def _open(path):
    async with SqliteStore(path):
        pass
