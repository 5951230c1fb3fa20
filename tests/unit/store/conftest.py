"""Fixtures: a database on SQLite."""

import pytest

from gateway.store import SqliteStore
from tests.migrated_databases import put_database


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data" / "gateway.db"


@pytest.fixture
async def store(path):
    async with SqliteStore(put_database(path)) as opened:
        yield opened


async def on_writer(store, function):
    return await store._writer._connection.run(function)
