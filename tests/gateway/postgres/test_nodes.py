"""Machines on one database: their names, the leader, and the tasks that each recovers."""

import asyncio
import contextlib
import math
import time
from functools import partialmethod

import attrs
import pytest

from gateway import Traits
from gateway.catalog.health import probe_now
from gateway.errors import SettingsError
from gateway.running.timing import Timing
from gateway.store.data_folder import open_store
from gateway.store.sql import locked
from gateway.store.sqlite.store import SqliteStore
from gateway_nodes.left_behind import refuse_left_behind
from gateway_nodes.postgres.store import PostgresStore
from gateway_nodes.provider_states import OffSale
from gateway_nodes.shared_states import SharedProviders
from gateway_operator.admin_password import AdminPassword
from gateway_testing.facts import NOW, queued
from tests.conftest import running
from tests.patience import skip_time
from tests.store_contract.provider_states import states_of


@contextlib.asynccontextmanager
async def node(address, name):
    async with PostgresStore(address, node=name) as store:
        yield store


async def register(store) -> None:
    await store.nodes.register(now=time.time())


async def test_one_node_leads_until_it_gives_up(migrated_url):
    async with node(migrated_url, "a") as one, node(migrated_url, "b") as other:
        for store in (one, other):
            await register(store)
        assert [await store.nodes.renew(lease_s=60, now=time.time()) for store in (one, other)] == [
            True,
            False,
        ]
        assert await one.nodes.renew(lease_s=60, now=time.time())
        assert [(each.name, each.is_leader) for each in await other.nodes.nodes()] == [
            ("a", True),
            ("b", False),
        ]
        await one.nodes.unregister()
        assert await other.nodes.renew(lease_s=60, now=time.time())
        assert [
            (each.name, each.is_leader, each.is_stopped) for each in await other.nodes.nodes()
        ] == [("a", False, True), ("b", True, False)]


async def test_a_node_that_stopped_in_order_comes_again_at_once(migrated_url):
    async with node(migrated_url, "a") as former, node(migrated_url, "a") as later:
        later.nodes._watch_s = math.inf  # it need not watch whether the former one runs
        await register(former)
        await former.nodes.renew(lease_s=60, now=time.time())
        await former.nodes.unregister()
        (stopped,) = await later.nodes.nodes()
        assert (stopped.is_stopped, stopped.roles, stopped.is_leader) == (True, (), False)
        assert abs(time.time() - stopped.seen_at) < 60
        await register(later)
        assert await later.nodes.renew(lease_s=60, now=time.time())
        (running_one,) = await later.nodes.nodes()
        assert (running_one.is_stopped, running_one.is_leader) == (False, True)


async def test_a_leader_that_died_is_followed(migrated_url):
    async with node(migrated_url, "a") as one, node(migrated_url, "b") as other:
        await register(one)
        await register(other)
        assert await one.nodes.renew(lease_s=0.05, now=time.time())
        for _ in range(1000):
            if await other.nodes.renew(lease_s=60, now=time.time()):
                break
            await asyncio.sleep(0.01)
        assert not await one.nodes.renew(lease_s=60, now=time.time())


async def test_fifty_that_ask_at_once_get_one_leader(migrated_url):
    async with contextlib.AsyncExitStack() as stack:
        stores = [
            await stack.enter_async_context(
                PostgresStore(migrated_url, node=f"n{number}", connections=2)
            )
            for number in range(10)
        ]
        answers = await asyncio.gather(
            *(store.nodes.renew(lease_s=60, now=time.time()) for store in stores * 5)
        )
        assert len({number % 10 for number, leads in enumerate(answers) if leads}) == 1


async def test_two_machines_never_have_one_name(migrated_url):
    async with node(migrated_url, "a") as one, node(migrated_url, "a") as other:
        one.nodes._watch_s = other.nodes._watch_s = 0.2
        await register(one)

        is_killed = asyncio.Event()

        async def run_on():
            while not is_killed.is_set():
                await one.nodes.renew(lease_s=60, now=time.time())
                await asyncio.sleep(0.01)

        runs = asyncio.create_task(run_on())
        with pytest.raises(SettingsError, match="GATEWAY_NODE"):
            await register(other)
        # Otherwise the write of a cancelled caller would run to its end.
        is_killed.set()
        await runs
        # Killed, and restarted at once: the row is not written any more.
        await register(other)
        assert [each.name for each in await other.nodes.nodes()] == ["a"]


async def test_a_clock_that_is_off_stops_the_start(migrated_url):
    async with node(migrated_url, "a") as store:
        with pytest.raises(SettingsError, match="clock is 60 seconds ahead of"):
            await store.nodes.register(now=time.time() + 60)
        with pytest.raises(SettingsError, match="seconds behind"):
            await store.nodes.register(now=time.time() - 60)


async def test_a_start_recovers_what_its_own_former_life_had_leased(migrated_url):
    async with node(migrated_url, "a") as one, node(migrated_url, "b") as other:
        first, second = await queued(one, 1), await queued(one, 2, id="task-2")
        (lease,) = await one.queue.lease(1, lease_s=60, now=NOW)
        (theirs,) = await other.queue.lease(1, lease_s=60, now=NOW)
        assert {lease.task_id, theirs.task_id} == {first.id, second.id}
        assert await one.queue.recover(now=NOW + 1) == 1
        # The other node's lease stays valid, and it can still complete its task.
        assert await other.queue.extend(theirs, lease_s=90, now=NOW, progress=None)
        assert not await one.queue.extend(lease, lease_s=90, now=NOW, progress=None)
    async with node(migrated_url, "b") as later:
        assert await later.queue.recover(now=NOW + 2) == 1


async def test_leadership_ends_by_itself_when_the_database_is_silent(migrated_url):
    async with node(migrated_url, "a") as store:
        await register(store)
        store.nodes._lease_s, store.nodes._keep_every_s = 60, 3600
        await store.nodes.start(time.time)
        assert store.nodes.leads()
        skip_time(60)
        assert not store.nodes.leads()
        await store.nodes.stop()


async def test_a_leader_that_drains_is_followed_while_it_still_runs(migrated_url):
    async with node(migrated_url, "a") as one, node(migrated_url, "b") as other:
        for store in (one, other):
            await register(store)
        draining = one.nodes
        draining._lease_s, draining._keep_every_s = 60, 0.02
        await draining.start(time.time)
        assert draining.leads()
        draining.step_down()
        for _ in range(1000):
            if await other.nodes.renew(lease_s=60, now=time.time()):
                break
            await asyncio.sleep(0.01)
        assert not draining.leads()
        assert [(each.name, each.is_leader) for each in await one.nodes.nodes()] == [
            ("a", False),
            ("b", True),
        ]
        await draining.stop()


async def test_a_single_machine_leads_without_asking(tmp_path):
    async with SqliteStore(tmp_path / "gateway.db") as store:
        assert store.nodes.leads()
        await store.nodes.start(time.time)
        assert store.nodes.leads()
        assert await store.nodes.nodes() == []
        await store.nodes.stop()


# -- gateways


async def test_of_two_first_starts_at_once_one_prints_the_password(settings, migrated_url, capsys):
    unset = settings.changed(admin_password="", admin_password_hash="")
    async with node(migrated_url, "a") as one, node(migrated_url, "b") as other:
        passwords = [AdminPassword(unset, store) for store in (one, other)]
        await asyncio.gather(*(password.make_first() for password in passwords))
        (line,) = capsys.readouterr().out.splitlines()
        printed = line.rpartition(" ")[2]
        assert [await password.matches(printed) for password in passwords] == [True, True]
        for password in passwords:
            password.close()


async def test_two_gateways_sell_and_work_on_one_database(settings, provider, payer, migrated_url):
    settings.data_dir.mkdir(parents=True)
    one, other = (attrs.evolve(settings, database_url=migrated_url, node=name) for name in "ab")
    async with running(one, provider) as first, running(other, provider) as second:
        # Transfers count from the first start on.
        await first.services.payments.cutoff_block()
        sold = [
            await buy((first, second)[number % 2], payer, is_direct=number < 4)
            for number in range(8)
        ]
        assert len(set(sold)) == 8
        # Each node knows it, whichever made it.
        for number, task_id in enumerate(sold):
            await completed((second, first)[number % 2], task_id)
        leaders = [each.services.store.nodes.leads() for each in (first, second)]
        assert leaders == [True, False]


async def test_what_one_node_takes_off_sale_another_does_not_sell(
    settings, provider, payer, migrated_url, monkeypatch
):
    settings.data_dir.mkdir(parents=True)
    monkeypatch.setattr(Timing, "__init__", partialmethod(Timing.__init__, provider_states_s=0.05))
    one, other = (attrs.evolve(settings, database_url=migrated_url, node=name) for name in "ab")
    async with running(one, provider) as first:
        await first.services.payments.cutoff_block()
        header = {"X-PAYMENT": payer.header()}

        async def offer(gateway):
            body = {"prompt": "a boat"}
            return await gateway.client.post("/api/x402/picture", json=body, headers=header)

        circuit = first.services.catalog["picture"].upstream.circuit
        circuit.trip("402: top up", pause_s=900, is_account=True)
        for _ in range(500):
            if (await states_of(first.services.store).exchange([])).states:
                break
            await asyncio.sleep(0.02)
        # It starts later, and knows it before its first sale.
        async with running(other, provider) as second:
            answer = await offer(second)
            assert (await answer.get_json())["code"] == "EXECUTION_ERROR"
            # An operator there has paid the bill, and probes the vendor.
            await probe_now(second.services.catalog["picture"])
            for _ in range(500):
                if not circuit.is_open:
                    break
                await asyncio.sleep(0.02)
            answer = await offer(first)
            assert answer.status_code == 200
            await completed(second, (await answer.get_json())["taskId"])


async def test_a_node_without_a_place_leaves_its_sales_to_the_one_that_has_it(
    settings, provider, payer, migrated_url
):
    settings.data_dir.mkdir(parents=True)
    provider.traits = Traits(max_concurrency=1, idempotent_submit=True)
    one, other = (attrs.evolve(settings, database_url=migrated_url, node=name) for name in "ab")
    async with running(one, provider) as first, running(other, provider) as second:
        await first.services.payments.cutoff_block()
        both = (first, second)
        for gateway in both:
            await gateway.services.find(SharedProviders).exchange()
        paces = [gateway.services.catalog["picture"].upstream.pace for gateway in both]
        assert sorted(pace.free_submits() for pace in paces) == [0, 1]
        sold = [(gateway, await buy(gateway, payer, is_direct=True)) for gateway in both * 2]
        for gateway, task_id in sold:
            await completed(gateway, task_id)


async def test_a_node_that_dies_gives_its_part_of_a_vendors_slots_back(migrated_url):
    async with node(migrated_url, "a") as one, node(migrated_url, "b") as other:
        for store in (one, other):
            await register(store)
        shared = await states_of(one).exchange([])
        assert (shared.workers, shared.node) == (["a", "b"], "a")
        # Killed: it leaves without notice, and its row gets old.
        await one._write(
            lambda db: db.execute("UPDATE nodes SET seen_at = seen_at - 21 WHERE name = 'b'")
        )
        assert (await states_of(one).exchange([])).workers == ["a"]
        await other.nodes.renew(lease_s=1, now=time.time())
        assert (await states_of(one).exchange([])).workers == ["a", "b"]
        # One that only sells takes no part.
        other.nodes._roles = ("web",)
        await other._write(lambda db: db.execute("DELETE FROM roles WHERE name = 'worker:b'"))
        await other.nodes.renew(lease_s=1, now=time.time())
        assert (await states_of(one).exchange([])).workers == ["a"]
        await other.nodes.unregister()
        assert (await states_of(one).exchange([])).workers == ["a"]


async def test_fifty_reports_at_once_are_all_counted(migrated_url):
    async with node(migrated_url, "a") as one, node(migrated_url, "b") as other:
        off = OffSale(name="endpoint:picture", reason="402", off_for_s=1.0)
        await asyncio.gather(*(states_of(store).exchange([off]) for store in [one, other] * 25))
        (state,) = (await states_of(one).exchange([])).states
        assert state.epoch == 50


async def buy(gateway, payer, *, is_direct) -> str:
    """Buy a picture by a transfer or by x402; returns the task's id."""
    if is_direct:
        body = {"slug": "picture", "prompt": "a boat", "txHash": payer.transfer(20_000)}
        answer = await gateway.client.post("/api/proxy-generate", json=body)
    else:
        headers = {"X-PAYMENT": payer.header()}
        body = {"prompt": "a boat"}
        answer = await gateway.client.post("/api/x402/picture", json=body, headers=headers)
    assert answer.status_code == 200, await answer.get_data()
    return (await answer.get_json())["taskId"]


async def completed(gateway, task_id) -> None:
    """Wait until a gateway reports a task as completed."""
    for _ in range(2400):
        task = await (await gateway.client.get(f"/api/task/{task_id}")).get_json()
        if task["status"] == "completed":
            return
        await asyncio.sleep(0.05)
    raise AssertionError(task)


async def test_sales_left_on_the_disk_stop_the_start(settings, migrated_url):
    shared = attrs.evolve(settings, database_url=migrated_url)
    settings.data_dir.mkdir(parents=True)
    refuse_left_behind(shared)
    async with open_store(settings) as store:
        refuse_left_behind(shared)
        await queued(store, 1)
    with pytest.raises(SettingsError, match="gateway migrate-store"):
        refuse_left_behind(shared)
    refuse_left_behind(settings)


async def test_another_database_than_the_sales_were_moved_to_stops_the_start(
    settings, provider, migrated_url
):
    settings.data_dir.mkdir(parents=True)
    async with open_store(settings) as store:
        await queued(store, 1)
        await store.meta("moved_to", lambda: "postgresql://elsewhere/gateway")
        await store.meta("move_id", lambda: "m-1")
    shared = attrs.evolve(settings, database_url=migrated_url, node="a")
    refuse_left_behind(shared)
    async with open_store(shared) as store:
        with pytest.raises(SettingsError, match="migrated to another database"):
            await store.check_settings(shared)
        await store.meta("moved_from", lambda: "m-1")
    async with running(shared, provider) as gateway:
        assert (await gateway.client.get("/api/health")).status_code == 200


@locked(lambda key: [key])
def count_locks(db, key):
    row = db.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone()
    return row[0]


async def test_a_write_takes_its_locks_however_its_arguments_are_passed(migrated_url):
    async with node(migrated_url, "a") as one:
        by_place = await one._write(count_locks, "a key")
        assert await one._write(count_locks, key="a key") == by_place > 0
