"""Tables of plugins on PostgreSQL: each file is applied once, however many nodes start."""

import asyncio

import psycopg
import pytest

from gateway.errors import SettingsError
from gateway_nodes.postgres.store import PostgresStore
from tests.plugin_tables import ORDERS, install_tables

__all__ = ["install_tables"]
MORE = {
    "sqlite": "ALTER TABLE acme_orders ADD COLUMN sent_at REAL;",
    "postgres": "ALTER TABLE acme_orders ADD COLUMN sent_at DOUBLE PRECISION;",
}


async def start(database_url, node="new"):
    async with PostgresStore(database_url, node=node) as store:
        await store.ping()


def read(database_url, sql):
    with psycopg.connect(database_url) as raw:
        return raw.execute(sql).fetchall()


def applied(database_url):
    sql = "SELECT plugin, number FROM plugin_schemas WHERE plugin = 'acme' ORDER BY number"
    return read(database_url, sql)


async def test_nodes_that_start_at_once_apply_each_file_once(database_url, install_tables):
    install_tables({"0001_orders.sql": ORDERS, "0002_sent.sql": MORE})
    await asyncio.gather(*(start(database_url, f"node {number}") for number in range(4)))
    assert applied(database_url) == [("acme", 1), ("acme", 2)]
    assert read(database_url, "SELECT task_id, note, sent_at FROM acme_orders") == []


async def test_a_later_version_of_a_plugin_adds_a_file(database_url, install_tables):
    install_tables({"0001_orders.sql": ORDERS})
    await start(database_url)
    install_tables({"0001_orders.sql": ORDERS, "0002_sent.sql": MORE})
    await start(database_url)
    assert applied(database_url) == [("acme", 1), ("acme", 2)]
    assert read(database_url, "SELECT task_id, note, sent_at FROM acme_orders") == []


async def test_a_node_without_the_plugin_starts_beside_one_with_it(database_url, install_tables):
    install_tables({"0001_orders.sql": ORDERS})
    await start(database_url)
    install_tables({})
    await start(database_url)
    assert applied(database_url) == [("acme", 1)]


async def test_a_file_that_fails_leaves_nothing_of_itself(database_url, install_tables):
    install_tables({"0001_orders.sql": ORDERS})
    await start(database_url)
    wrong = f"{MORE['postgres']} INSERT INTO acme_nowhere VALUES (1);"
    install_tables({"0001_orders.sql": ORDERS, "0002_sent.sql": wrong})
    with pytest.raises(SettingsError, match='acme 0002: relation "acme_nowhere" does not exist'):
        await start(database_url)
    assert applied(database_url) == [("acme", 1)]
    columns = """SELECT column_name FROM information_schema.columns
        WHERE table_name = 'acme_orders' ORDER BY ordinal_position"""
    assert read(database_url, columns) == [("task_id",), ("note",)]


async def test_a_broken_rule_stops_the_start_before_anything_is_changed(
    database_url, install_tables
):
    install_tables({"0001_orders.sql": "DROP TABLE task_files"})
    with pytest.raises(SettingsError, match="acme 0001 has: DROP TABLE task_files"):
        await start(database_url)
    assert read(database_url, "SELECT to_regclass('payments')::text") == [(None,)]


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("DROP TABLE acme_orders, claims CASCADE;", "The plugin acme changed claims, which"),
        ("DROP INDEX acme_i, payments_one_use;", "The plugin acme changed payments, which"),
        (
            "INSERT INTO acme_orders WITH x AS (DELETE FROM meta RETURNING 1) SELECT '1';",
            "must be at the top level",
        ),
    ],
)
async def test_a_file_that_changes_other_tables_is_refused(
    database_url, install_tables, sql, reason
):
    index = "CREATE INDEX acme_i ON acme_orders (note);"
    first = {kind: f"{table} {index}" for kind, table in ORDERS.items()}
    install_tables({"0001_orders.sql": first})
    await start(database_url)
    before = read(database_url, "SELECT count(*) FROM meta")
    install_tables({"0001_orders.sql": first, "0002_bad.sql": sql})
    with pytest.raises(SettingsError, match=reason):
        await start(database_url)
    assert applied(database_url) == [("acme", 1)]
    assert read(database_url, "SELECT to_regclass('claims') IS NULL") == [(False,)]
    assert read(database_url, "SELECT to_regclass('payments_one_use') IS NULL") == [(False,)]
    assert read(database_url, "SELECT count(*) FROM meta") == before
