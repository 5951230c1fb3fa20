"""Fixtures: the database of every gateway of the tests, and databases on PostgreSQL."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import pytest

from gateway import Settings
from tests.postgres_server import PostgresServer, start_or_skip

if TYPE_CHECKING:
    from gateway.store import SqlStore

# Read before any test: each begins without the machine's settings.
TEST_DATABASE = os.environ.get("GATEWAY_TEST_DATABASE", "sqlite")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server of this run, or a skip if none is installed."""
    server = start_or_skip()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def database_url(postgres_server) -> Iterator[str]:
    """The URL of an empty database on PostgreSQL."""
    with postgres_server.database() as address:
        yield address


@pytest.fixture
def migrated_url(postgres_server) -> Iterator[str]:
    """The URL of a database on PostgreSQL with the gateway's tables, which take 0.2 s to make."""
    with postgres_server.database(migrated=True) as address:
        yield address


@pytest.fixture(autouse=True)
def _chosen_database(request, monkeypatch) -> Iterator[None]:
    """Let every gateway of the test use PostgreSQL, if the run asks for it.

    Each data folder has its own database, as with SQLite.
    """
    if TEST_DATABASE != "postgres":
        yield
        return
    addresses: dict[Path, str] = {}
    from gateway_nodes.postgres.session import POSTGRESQL, Session

    # Tests move the clocks of their gateways, and restart one at once after a crash.
    monkeypatch.setattr("gateway.store.sql.MAX_SKEW_S", math.inf)
    monkeypatch.setattr(Session, "dialect", attrs.evolve(POSTGRESQL, is_shared=False))
    monkeypatch.setattr("gateway_nodes.records._GONE_S", 0.0)
    with contextlib.ExitStack() as databases:

        def open_store(settings: Settings) -> SqlStore:
            from gateway_nodes.postgres.store import PostgresStore

            folder = settings.data_dir
            if folder not in addresses:
                server = request.getfixturevalue("postgres_server")
                addresses[folder] = databases.enter_context(server.database(migrated=True))
            folder.mkdir(parents=True, exist_ok=True)
            return PostgresStore(addresses[folder])

        monkeypatch.setattr("gateway.app.open_store", open_store)
        yield
