"""Settings of the page on PostgreSQL are read before the gateway opens its database."""

import asyncio

import attrs
import psycopg

from gateway.settings import Settings
from gateway.settings.page import seal
from gateway.store.page_settings import StoredSetting, find_all, put, with_page_settings
from gateway_nodes.postgres.migrations import version_of
from gateway_nodes.postgres.store import PostgresStore

SECRET = "0123456789abcdef0123456789abcdef"


def test_a_database_without_a_schema_gets_none(database_url, tmp_path):
    settings = Settings(
        wallet="0x" + "11" * 20,
        settings_secret=SECRET,
        database_url=database_url,
        data_dir=tmp_path,
        outputs_url="s3://bucket/outputs",
    )
    with psycopg.connect(database_url, autocommit=True) as raw:
        # As before the first start.
        raw.execute("DROP SCHEMA public CASCADE")
        raw.execute("CREATE SCHEMA public")
        assert with_page_settings(settings) == settings
        assert version_of(raw) == 0


async def test_a_stored_value_is_read_replaced_and_removed(database_url, tmp_path):
    settings = Settings(
        wallet="0x" + "11" * 20,
        settings_secret=SECRET,
        database_url=database_url,
        data_dir=tmp_path,
        outputs_url="s3://bucket/outputs",
    )
    async with PostgresStore(database_url) as store:
        for name in ("First", "Second"):
            sealed = StoredSetting(seal(SECRET, "name", name), 5.0)
            await store.write(put, "name", sealed)
            # In a thread, because it runs a loop of its own, as before a start.
            assert (await asyncio.to_thread(with_page_settings, settings)).name == name
        without = attrs.evolve(settings, settings_secret="")
        found = await asyncio.to_thread(with_page_settings, without)
        assert (found.name, found.page_unread.keys()) == (Settings().name, {"name"})
        await store.write(put, "name", None)
        assert await store.read(find_all) == {}
