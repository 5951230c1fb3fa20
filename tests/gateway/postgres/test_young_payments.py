"""The leader leaves a young payment to the node that opened it, unless that one may be dead."""

import asyncio
import contextlib
import time

import attrs
import pytest

from gateway.errors import StoreUnavailable
from gateway_nodes import records
from gateway_nodes.postgres.store import PostgresStore
from tests.conftest import WALLET, running
from tests.gateway.settlement.faulty_rpc import FaultyRpc
from tests.patience import skip_time, until
from tests.waits import FAST, Waits, started_with

PRICE = 20_000
# Longer than any test.
ENDLESS_S = 1e6
# Each sweep calls it once for the only key.
SWEEP = "eth_getTransactionCount"


@pytest.fixture
def rpc(chain):
    with FaultyRpc(chain) as endpoint:
        yield endpoint


@contextlib.asynccontextmanager
async def leader_and_seller(settings, provider, database_url, rpc, *, patience_s=ENDLESS_S):
    """Yield a leader whose calls `rpc` counts, and a node whose drivers do nothing."""
    settings.data_dir.mkdir(parents=True)
    first, other = (attrs.evolve(settings, database_url=database_url, node=name) for name in "ab")
    first = attrs.evolve(first, rpc_urls=(rpc.url,))
    timing = attrs.evolve(FAST, patience_s=patience_s)
    with started_with(Waits(outcome_s=0.1, settlement=timing)):
        async with running(first, provider) as leader:
            await leader.services.payments.cutoff_block()
            await until(lambda: SWEEP in rpc.seen)
            async with running(other, provider) as seller:
                seller.services.settlements.settler.submit = hang
                await heartbeat(leader)
                # The other node's start was long ago.
                skip_time(60)
                await heartbeat(leader)
                yield leader, seller


async def hang(payment):
    await asyncio.Event().wait()


async def heartbeat(gateway) -> None:
    await gateway.services.store.nodes.renew(lease_s=60, now=time.time())


async def sell(gateway, payer) -> None:
    """Sell a picture whose settlement stays open."""
    headers = {"X-PAYMENT": payer.header()}
    body = {"prompt": "a boat"}
    answer = await gateway.client.post("/api/x402/picture", json=body, headers=headers)
    assert answer.status_code == 200


async def sweeps(rpc, count=10) -> None:
    end = rpc.seen.count(SWEEP) + count
    await until(lambda: rpc.seen.count(SWEEP) >= end)


@pytest.fixture
def no_late_heartbeat(monkeypatch):
    """Let no heartbeat be late, however busy the machine is."""
    for name in ("_SILENT_S", "_GONE_S"):
        monkeypatch.setattr(records, name, ENDLESS_S)


def fail_once(gateway, error) -> None:
    """Let the gateway's next check of a payment on the chain raise an error."""
    settlements = gateway.services.settlements

    async def fail(*_, **options):
        del settlements._check_chain
        raise error

    settlements._check_chain = fail


async def until_closed(gateway) -> None:
    async def is_closed():
        return not await gateway.services.store.open_payments()

    await until(is_closed)


@pytest.mark.usefixtures("no_late_heartbeat")
async def test_a_driver_that_fails_on_the_leader_is_replaced_by_the_next_sweep(
    settings, provider, payer, migrated_url, rpc
):
    async with leader_and_seller(settings, provider, migrated_url, rpc) as (leader, _):
        fail_once(leader, RuntimeError("a fault"))
        await sell(leader, payer)
        await until_closed(leader)


@pytest.mark.usefixtures("no_late_heartbeat")
async def test_a_driver_outlives_a_failure_of_the_database(
    settings, provider, payer, migrated_url, rpc
):
    async with leader_and_seller(settings, provider, migrated_url, rpc) as (_, seller):
        del seller.services.settlements.settler.submit
        fail_once(seller, StoreUnavailable())
        await sell(seller, payer)
        await until_closed(seller)


@pytest.mark.usefixtures("no_late_heartbeat")
async def test_a_young_payment_is_left_to_its_node(settings, provider, payer, migrated_url, rpc):
    async with leader_and_seller(settings, provider, migrated_url, rpc) as (leader, seller):
        await sell(seller, payer)
        await sweeps(rpc)
        assert not {"eth_sendRawTransaction", "eth_getTransactionReceipt"} & set(rpc.seen)
        assert len(await leader.services.store.open_payments()) == 1


async def test_a_dead_nodes_payment_is_settled_by_the_leader(
    settings, provider, payer, migrated_url, rpc, chain
):
    async with leader_and_seller(settings, provider, migrated_url, rpc) as (leader, seller):
        await sell(seller, payer)
        await sweeps(rpc)
        # It sends no more heartbeats.
        seller.services.store.nodes._keeping.cancel()
        await leader.services.store._write(
            lambda db: db.execute("UPDATE nodes SET seen_at = seen_at - 11 WHERE name = 'b'")
        )
        assert chain.usdc_balance(WALLET) == 0
        await heartbeat(leader)
        await until(lambda: chain.usdc_balance(WALLET) == PRICE)


async def test_a_stopped_nodes_payment_is_settled_by_the_leader(
    settings, provider, payer, migrated_url, rpc, chain
):
    async with leader_and_seller(settings, provider, migrated_url, rpc) as (leader, seller):
        await sell(seller, payer)
        await sweeps(rpc)
        await seller.services.store.nodes.stop()
        await heartbeat(leader)
        await until(lambda: chain.usdc_balance(WALLET) == PRICE)


async def test_a_payment_that_its_node_leaves_open_is_settled_after_a_while(
    settings, provider, payer, migrated_url, rpc, chain
):
    nodes = leader_and_seller(settings, provider, migrated_url, rpc, patience_s=0.5)
    async with nodes as (_, seller):
        await sell(seller, payer)
        await until(lambda: chain.usdc_balance(WALLET) == PRICE)


async def test_a_new_leader_settles_the_payments_of_the_former(
    settings, provider, payer, migrated_url, rpc, chain
):
    async with leader_and_seller(settings, provider, migrated_url, rpc) as (leader, other):
        leader.services.settlements.settler.submit = hang
        del other.services.settlements.settler.submit
        await sell(leader, payer)
        await leader.services.store.nodes.stop()
        await other.services.store.nodes._renew_once(time.time)
        await until(lambda: chain.usdc_balance(WALLET) == PRICE)


@pytest.mark.usefixtures("no_late_heartbeat")
async def test_a_node_that_leads_again_settles_what_was_opened_meanwhile(
    settings, provider, payer, migrated_url, rpc, chain
):
    nodes = leader_and_seller(settings, provider, migrated_url, rpc, patience_s=1000)
    async with nodes as (leader, seller):
        sweep = leader.services.settlements._periodic
        await sweep.stop()
        skip_time(1500)
        await sell(seller, payer)
        sweep.start(every_s=0.05)
        await until(lambda: chain.usdc_balance(WALLET) == PRICE)


# -- what a node knows of the others


@contextlib.asynccontextmanager
async def calm_nodes(database_url):
    """Yield a node that knows two others for long, one of those, and a way to send a heartbeat.

    A heartbeat returns the loop's times before and after.
    """
    async with contextlib.AsyncExitStack() as stack:
        one, other, third = [
            await stack.enter_async_context(PostgresStore(database_url, node=name))
            for name in "abc"
        ]

        async def beat(store=one):
            before = asyncio.get_running_loop().time()
            await store.nodes.renew(lease_s=60, now=time.time())
            return before, asyncio.get_running_loop().time()

        for store in (one, other, third, one):
            await beat(store)
        skip_time(60)
        _, now = await beat()
        assert not one.nodes.may_have_lost(now)
        yield one, other, beat


@pytest.mark.usefixtures("no_late_heartbeat")
async def test_a_record_seen_soon_after_a_node_stops_may_be_its_own(migrated_url):
    async with calm_nodes(migrated_url) as (one, other, beat):
        await other.nodes.unregister()
        before, after = await beat()
        assert one.nodes.may_have_lost(before + 9)
        assert not one.nodes.may_have_lost(after + 11)


@pytest.mark.usefixtures("no_late_heartbeat")
async def test_a_node_that_restarts_between_two_heartbeats_may_have_lost_records(migrated_url):
    async with calm_nodes(migrated_url) as (one, other, beat):
        await other.nodes.unregister()
        async with PostgresStore(migrated_url, node="b") as later:
            await later.nodes.register(now=time.time())
            await beat(later)
            _, after = await beat()
            assert one.nodes.may_have_lost(after)
