"""A standby that takes over may have lost sales: none of their payments buys again."""

import asyncio
import contextlib
import os
import subprocess
import sys
import time

import psycopg
import pytest

from gateway.errors import Restarting, StoreUnavailable
from gateway.store import meta
from gateway_nodes.postgres.store import PostgresStore
from gateway_testing.facts import new_task, transfer, tx_hash
from tests.conftest import running
from tests.gateway.direct.test_direct_route import claim
from tests.postgres_server import start_or_skip


@pytest.fixture(scope="module")
def primary():
    """A server for these tests only, which they crash."""
    server = start_or_skip()
    yield server
    server.stop()


@contextlib.contextmanager
def standby_of(server):
    copy = server.copied()
    try:
        yield copy
    finally:
        copy.stop()


async def meta_of(address, key):
    async with PostgresStore(address) as store:
        return await store.known_meta(key)


def rewrite(address, key, old, new):
    with psycopg.connect(address, autocommit=True) as raw:
        raw.execute(
            "UPDATE meta SET value = replace(value, %s, %s) WHERE key = %s", (old, new, key)
        )


async def accept(store, number):
    return await store.accept_direct(
        new_task(id=f"task-{number}"), tx_hash(number), [transfer(number)], None
    )


async def test_a_transfer_whose_sale_was_forgotten_sells_nothing_again(
    primary, settings, provider, chain, clock, payer
):
    settings.data_dir.mkdir()
    with primary.database(migrated=True) as address:
        async with running(
            settings, provider, now=clock, store=PostgresStore(address, node="a")
        ) as gateway:
            await gateway.services.payments.cutoff_block()
            with standby_of(primary) as copy:
                paid = payer.transfer(20_000)
                assert (await claim(gateway, paid)).status_code == 200
                copy.promote()
                name = address.partition("?")[0].rpartition("/")[2]
                await _claim_again(copy.address_of(name), paid, settings, provider, clock, payer)


async def _claim_again(address, paid, settings, provider, clock, payer):
    async with running(
        settings, provider, now=clock, store=PostgresStore(address, node="b")
    ) as gateway:
        refused = await claim(gateway, paid)
        assert refused.status_code == 400, await refused.get_json()
        # The servers' clocks may differ by five seconds, and block times are whole seconds.
        await asyncio.sleep(6.1)
        fresh = await claim(gateway, payer.transfer(20_000))
        assert fresh.status_code == 200, await fresh.get_json()


async def test_of_nodes_that_start_after_a_failover_one_dates_the_database_anew(primary):
    with primary.database(migrated=True) as address:
        async with PostgresStore(address) as store:
            await store.meta("born_at", lambda: "100.0")
            await store.meta("floor_block", lambda: "7")
        name = address.partition("?")[0].rpartition("/")[2]
        with standby_of(primary) as copy:
            copy.promote()
            found = await asyncio.gather(
                *(meta_of(copy.address_of(name), "born_at") for _ in range(4))
            )
            assert len(set(found)) == 1
            assert float(found[0]) > 10**9
            assert await meta_of(copy.address_of(name), "floor_block") is None
        # If nothing changed, the creation time stays.
        assert await meta_of(address, "born_at") == "100.0"


async def test_a_standby_that_was_waited_for_forgets_nothing(primary):
    with primary.database(migrated=True) as address:
        async with PostgresStore(address) as store:
            await store.meta("born_at", lambda: "100.0")
        # The primary records this if `synchronous_standby_names` is set.
        rewrite(address, "database_server", "waits for no standby", "waits for a standby")
        name = address.partition("?")[0].rpartition("/")[2]
        with standby_of(primary) as copy:
            copy.promote()
            assert await meta_of(copy.address_of(name), "born_at") == "100.0"


async def test_a_copy_on_another_server_may_lack_sales(database_url):
    async with PostgresStore(database_url) as store:
        await store.meta("born_at", lambda: "100.0")
        identity = (await store.known_meta("database_server")).partition(",")[0]
    rewrite(database_url, "database_server", identity, "7654321")
    rewrite(database_url, "database_server", "waits for no standby", "waits for a standby")
    assert float(await meta_of(database_url, "born_at")) > 10**9


async def test_a_node_that_meets_the_standby_sells_nothing_more_and_ends(primary, tmp_path_factory):
    link = tmp_path_factory.mktemp("pg") / "now"
    link.symlink_to(primary.folder)
    with primary.database(migrated=True) as address, standby_of(primary) as copy:
        name = address.partition("?")[0].rpartition("/")[2]
        by_link = f"postgresql://gateway@/{name}?host={link}"
        async with PostgresStore(by_link, node="a", connections=2) as store:
            await accept(store, 1)
            copy.promote()
            link.unlink()
            link.symlink_to(copy.folder)
            primary.crash()
            try:
                with pytest.raises(StoreUnavailable):
                    await accept(store, 2)
                await asyncio.sleep(0)
                assert "Another server" in store.fitness.problem
                # All else continues: sold tasks are worked on and answered.
                assert await store.task("task-2") is None
                assert await store._write(meta.find_or_make, "color", "red") == "red"
            finally:
                primary.restart()


async def test_a_node_that_meets_a_copy_on_another_cluster_sells_nothing_more(
    primary, database_url, tmp_path_factory
):
    """An independently created cluster is on the first timeline, like most."""
    front, _, folder = database_url.partition("?host=")
    name, link = front.rpartition("/")[2], tmp_path_factory.mktemp("pg") / "now"
    link.symlink_to(folder)
    by_link = f"postgresql://gateway@/{name}?host={link}"
    async with PostgresStore(by_link, node="a", connections=1) as store:
        await accept(store, 1)
        with _same_name_on(primary, name):
            link.unlink()
            link.symlink_to(primary.folder)
            _end_sessions(database_url)
            with pytest.raises(StoreUnavailable):
                await accept(store, 1)
            await asyncio.sleep(0)
            assert "Another server" in store.fitness.problem


@contextlib.contextmanager
def _same_name_on(server, name):
    """A database with the gateway's empty tables, under another one's name."""
    with psycopg.connect(server.address_of("postgres"), autocommit=True) as raw:
        raw.execute(f"CREATE DATABASE {name} TEMPLATE {server._migrated_template()}")
        try:
            yield
        finally:
            raw.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _end_sessions(address):
    with psycopg.connect(address, autocommit=True) as raw:
        raw.execute(
            """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE datname = current_database() AND pid <> pg_backend_pid()"""
        )


def _as_guest(address):
    """Return the URL for a role that may not read the cluster's name, as at some vendors."""
    with psycopg.connect(address, autocommit=True) as raw:
        raw.execute("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
        raw.execute("DROP ROLE IF EXISTS guest")
        raw.execute("CREATE ROLE guest LOGIN IN ROLE pg_read_all_data, pg_write_all_data")
    return address.replace("gateway@", "guest@")


async def test_where_the_cluster_has_no_name_a_takeover_is_never_taken_for_whole(database_url):
    async with PostgresStore(database_url) as store:
        await store.meta("born_at", lambda: "100.0")
    known = "unknown, 00000009, waits for a standby"
    with psycopg.connect(database_url, autocommit=True) as raw:
        raw.execute("UPDATE meta SET value = %s WHERE key = 'database_server'", (known,))
    assert float(await meta_of(_as_guest(database_url), "born_at")) > 10**9


async def test_a_process_that_stood_still_while_another_took_its_name_ends(database_url):
    async with (
        PostgresStore(database_url, node="a") as frozen,
        PostgresStore(database_url, node="a") as other,
    ):
        frozen.nodes._watch_s = other.nodes._watch_s = 0.05
        async with asyncio.timeout(60):
            await frozen.nodes.register(now=await _clock(frozen))
            assert await frozen.nodes.renew(lease_s=0, now=time.time())
            await other.nodes.register(now=await _clock(other))
        assert await other.nodes.renew(lease_s=60, now=time.time())
        assert not await frozen.nodes.renew(lease_s=60, now=time.time())
        assert "GATEWAY_NODE" in frozen.fitness.problem
        # The newcomer's row stays.
        await frozen.nodes.unregister()
        assert [(one.name, one.is_leader) for one in await other.nodes.nodes()] == [("a", True)]


async def _clock(store):
    from gateway.store.sql import read_clock

    return await store._short_read(read_clock)


async def test_a_process_that_may_not_go_on_drains_and_ends(settings, provider, clock):
    """`gateway serve` waits for this, and then exits with code 1 and the message."""
    async with running(settings, provider, now=clock) as gateway:
        services = gateway.services
        services.store.fitness.mark_unfit("Another server stands in.")
        assert services.lifecycle.unfit.is_set()
        refused = await gateway.client.post("/api/x402/picture", json={"prompt": "a boat"})
        assert refused.status_code == 402
        with pytest.raises(Restarting):
            services.readiness.check_serving("picture")


def test_serve_ends_with_code_1_once_it_is_unfit(database_url, tmp_path):
    env = {
        "PATH": os.environ["PATH"],
        "GATEWAY_BASE_URL": "http://gateway.test",
        "GATEWAY_WALLET": "0x" + "b2" * 20,
        "GATEWAY_SETTLEMENT_KEY": "1" * 64,
        "GATEWAY_OUTPUTS_URL": "s3://outputs",
        "GATEWAY_OUTPUTS_ACCESS_KEY_ID": "key",
        "GATEWAY_OUTPUTS_SECRET_ACCESS_KEY": "hidden",
        "GATEWAY_RPC_URLS": "http://127.0.0.1:9",
        "GATEWAY_BIND": "127.0.0.1:0",
        "GATEWAY_NODE": "a",
        "GATEWAY_DATABASE_URL": database_url,
        "GATEWAY_DATA_DIR": str(tmp_path / "data"),
        "GATEWAY_MIN_FREE_DISK_MB": "0",
    }
    command = [sys.executable, "-m", "gateway", "serve"]
    with subprocess.Popen(
        command, env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as serving:
        try:
            for line in serving.stdout:
                if '"event": "started"' in line:
                    break
            _take_the_name(database_url)
            _, errors = serving.communicate(timeout=100)
        finally:
            serving.kill()
    assert serving.returncode == 1, errors
    assert "another one runs as node a by now" in errors


def _take_the_name(address):
    with psycopg.connect(address, autocommit=True) as raw:
        raw.execute("UPDATE nodes SET life = 'another' WHERE name = 'a'")
