"""Each node signs with keys of its own, by leases in the database."""

import asyncio
import contextlib
import time

import attrs
import pytest

from gateway.errors import SettingsError
from gateway.store import nonces
from gateway_nodes.key_leases import read_leases
from gateway_nodes.postgres import checks
from gateway_nodes.postgres.session import connect
from gateway_nodes.postgres.store import PostgresStore
from tests.conftest import WALLET, Payer, running
from tests.gateway.postgres.test_roles import run_nodes
from tests.gateway.settlement.faulty_rpc import FaultyRpc, forgetful
from tests.gateway.settlement.test_settlement_keys import new_key, sent_by, with_keys
from tests.patience import until
from tests.waits import FAST, Waits, started_with

KEYS = tuple(f"0x{number}" for number in range(5))


class Keys:
    """A settler with keys, as a node sees it."""

    def __init__(self, addresses=KEYS) -> None:
        self.addresses = addresses
        self.busy_keys = []
        self.own, self.common, self.busy = None, None, None

    def share_keys(self, own, common, busy) -> None:
        self.own, self.common, self.busy = own, common, busy


@contextlib.asynccontextmanager
async def nodes_of(address, names, **options):
    async with contextlib.AsyncExitStack() as stack:
        stores = [
            await stack.enter_async_context(PostgresStore(address, node=name, **options))
            for name in names
        ]
        for store in stores:
            store.nodes.settler = Keys()
        yield stores


async def beat(*stores, times=1):
    """Send heartbeats, and return each node's keys."""
    for _ in range(times):
        for store in stores:
            assert await store.nodes.renew(lease_s=60, now=time.time()) in (True, False)
    return [store.nodes.settler.own for store in stores]


async def die(store, *, seconds=21) -> None:
    """Let a node's last heartbeat be long ago."""
    name = store.nodes.name
    changes = (
        f"UPDATE nodes SET seen_at = seen_at - {seconds} WHERE name = '{name}'",
        f"UPDATE roles SET until = until - {seconds} WHERE '{name}' IN (holder, substr(name, 10))",
    )
    for change in changes:
        await store._write(lambda db, change=change: db.execute(change).rowcount)


def assert_divided(shares, keys=KEYS) -> None:
    assert sorted(key for own in shares for key in own) == sorted(keys)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


async def test_nodes_divide_the_keys(migrated_url):
    async with nodes_of(migrated_url, "abc") as (one, other, third):
        assert await beat(one) == [KEYS]
        # A node that comes gets its keys once the others have given them up.
        (early,) = await beat(other)
        assert early == ()
        assert_divided(await beat(one, other, times=2))
        assert_divided(shares := await beat(one, other, third, times=2))
        assert await beat(one, other, third) == shares


async def test_a_dead_nodes_keys_are_taken_over_after_a_while(migrated_url):
    async with nodes_of(migrated_url, "ab") as (one, other):
        shares = await beat(one, other, times=3)
        assert_divided(shares)
        await die(other, seconds=11)
        assert await beat(one) == shares[:1]
        await die(other, seconds=10)
        assert [set(own) for own in await beat(one)] == [set(KEYS)]
        # It only stood still, and gets its share again.
        assert_divided(await beat(other, one, times=2))


async def test_a_node_that_stops_gives_its_keys_back_at_once(migrated_url):
    async with nodes_of(migrated_url, "ab") as (one, other):
        await beat(one, other, times=3)
        await other.nodes.unregister()
        assert [set(own) for own in await beat(one)] == [set(KEYS)]


async def test_a_node_keeps_its_keys_across_a_restart(migrated_url):
    async with nodes_of(migrated_url, "ab") as (one, other):
        shares = await beat(one, other, times=3)
        async with nodes_of(migrated_url, "b") as (later,):
            later.nodes._watch_s = 0
            await later.nodes.register(now=time.time())
            assert await beat(later) == shares[1:]


async def test_a_former_process_of_a_node_gives_none_of_its_keys_back(migrated_url):
    async with nodes_of(migrated_url, "a") as (former,), nodes_of(migrated_url, "a") as (later,):
        await beat(former)
        later.nodes._watch_s = 0
        await later.nodes.register(now=time.time())
        await beat(later)
        await former.nodes.unregister()
        assert (await later.read(read_leases)).own == {"a": list(KEYS)}


async def test_with_fewer_keys_than_nodes_some_have_none(migrated_url):
    async with nodes_of(migrated_url, "abc") as stores:
        for store in stores:
            store.nodes.settler = Keys(KEYS[:2])
        assert sorted(map(len, await beat(*stores, times=3))) == [0, 1, 1]


async def test_no_node_signs_with_a_key_that_another_node_lacks(migrated_url):
    async with nodes_of(migrated_url, "ab") as (one, other):
        # A key is added, and the second node has been restarted with it.
        one.nodes.settler = Keys(KEYS[:4])
        assert_divided(await beat(one, other, times=3), KEYS[:4])
        assert other.nodes.settler.common == KEYS[:4]
        with connect(migrated_url, "test") as raw:
            with pytest.raises(SettingsError, match=r"^a lacks 0x4, so no node signs with it"):
                checks.check_keys(raw)
            one.nodes.settler = Keys()
            assert_divided(await beat(one, other, times=2))
            assert other.nodes.settler.common == KEYS
            assert checks.check_keys(raw) in ("a has 2, b has 3", "a has 3, b has 2")


async def test_a_leader_that_does_not_sell_must_have_a_key_too(migrated_url):
    async with (
        nodes_of(migrated_url, "a") as (one,),
        nodes_of(migrated_url, "b", roles=("signer",)) as (leader,),
    ):
        leader.nodes.settler = Keys(KEYS[:2])
        assert await beat(leader, one, times=2) == [(), KEYS[:2]]


async def test_a_node_that_drains_gives_its_keys_up(migrated_url):
    async with nodes_of(migrated_url, "ab") as (one, other):
        await beat(one, other, times=3)
        other.nodes.step_down()
        await beat(other, one)
        assert (set(one.nodes.settler.own), other.nodes.settler.own) == (set(KEYS), ())
        # Its last payments may need any key.
        assert other.nodes.settler.common == KEYS


async def test_a_node_that_does_not_sell_has_no_keys(migrated_url):
    async with (
        nodes_of(migrated_url, "a") as (one,),
        nodes_of(migrated_url, "b", roles=("worker", "signer")) as (other,),
    ):
        assert await beat(one, other, times=2) == [KEYS, ()]


async def test_heartbeats_at_once_give_each_key_to_one_node(migrated_url):
    names = [f"n{number}" for number in range(5)]
    async with nodes_of(migrated_url, names, connections=2) as stores:
        for _ in range(3):
            await asyncio.gather(*(beat(store) for store in stores))
            held = [key for store in stores for key in store.nodes.settler.own]
            assert len(held) == len(set(held))
        assert_divided(await beat(*stores))


async def test_every_node_hears_of_a_busy_key(migrated_url):
    async with nodes_of(migrated_url, "ab") as (one, other):
        other.nodes.settler.busy_keys = ["0x1"]
        await beat(other, one)
        assert one.nodes.settler.busy == ("0x1",)
        other.nodes.settler.busy_keys = []
        await one._write(lambda db: db.execute("UPDATE roles SET until = until - 61").rowcount)
        await beat(other, one)
        assert one.nodes.settler.busy == ()


# -- commands


async def test_commands_show_the_keys_of_each_node(migrated_url, monkeypatch, tmp_path):
    with connect(migrated_url, "test") as raw:
        assert checks.check_keys(raw) == "no running node has keys of its own"
        async with nodes_of(migrated_url, "abc") as stores:
            for store in stores:
                store.nodes.settler = Keys(KEYS[:2])
            await beat(*stores, times=3)
            found = checks.check_keys(raw)
            assert found.startswith("a has 1, b has 1; these use the others' keys: c ")
            for store in stores:
                store.nodes.settler = Keys(KEYS[:4])
            await beat(*stores, times=3)
            assert checks.check_keys(raw) == "a has 2, b has 1, c has 1"
            shown = await run_nodes(migrated_url, monkeypatch, tmp_path)
            assert shown.count("with 2 settlement keys") == 1
            assert shown.count("with 1 settlement key") == 2
            stores[2].nodes.settler.busy_keys = ["0x1"]
            await beat(*stores)
            with pytest.raises(SettingsError, match="wait for 0x1"):
                checks.check_keys(raw)


# -- gateways


@pytest.fixture
def accounts(chain):
    return [new_key(chain) for _ in range(4)]


@contextlib.asynccontextmanager
async def two_gateways(settings, provider, database_url, accounts, rpc=None):
    """Yield two gateways with the same keys, each of which has half of them."""
    settings.data_dir.mkdir(parents=True)
    shared = attrs.evolve(with_keys(settings, *accounts), database_url=database_url)
    one, other = (attrs.evolve(shared, node=name) for name in "ab")
    if rpc is not None:
        other = attrs.evolve(other, rpc_urls=(rpc.url,))
    async with running(one, provider) as first, running(other, provider) as second:
        await first.services.payments.cutoff_block()
        for gateway in (first, second):
            await gateway.services.store.nodes.renew(lease_s=60, now=time.time())
        yield first, second


def keep_shares(*gateways) -> None:
    """Let no later heartbeat change the keys of these gateways."""
    for gateway in gateways:
        gateway.services.store.nodes._keeping.cancel()


async def sell(gateway, payer) -> None:
    headers = {"X-PAYMENT": payer.header()}
    body = {"prompt": "a boat"}
    answer = await gateway.client.post("/api/x402/picture", json=body, headers=headers)
    assert answer.status_code == 200


async def sell_six(gateways, chain) -> None:
    payers = [Payer(chain) for _ in range(6)]
    await asyncio.gather(
        *(sell(gateways[number % len(gateways)], each) for number, each in enumerate(payers))
    )


async def test_each_gateway_signs_with_its_own_keys_and_counts_no_others(
    settings, provider, migrated_url, accounts, chain
):
    counted = set()

    def count(rpc, request, body):
        counted.add(request["params"][0].lower())
        return chain.rpc.answer(body)

    with FaultyRpc(chain) as rpc:
        nodes = two_gateways(settings, provider, migrated_url, accounts, rpc)
        async with nodes as (first, second):
            keep_shares(first, second)
            rpc.faults["eth_getTransactionCount"] = count
            await sell_six([second], chain)
            await until(lambda: chain.usdc_balance(WALLET) == 6 * 20_000)
        by_key = sent_by(chain, *accounts)
    # The first node has given the last two up.
    assert (by_key[:2], sum(by_key)) == ([0, 0], 6)
    assert counted == {account.address.lower() for account in accounts[2:]}


async def test_two_nodes_that_believe_to_have_one_key_give_no_nonce_twice(
    settings, provider, migrated_url, accounts, chain, monkeypatch
):
    def choose_slowly(*arguments):
        nonce = next_nonce(*arguments)
        time.sleep(0.02)  # Both nodes choose at the same time, however few processors there are.
        return nonce

    next_nonce = nonces.next_nonce
    monkeypatch.setattr(nonces, "next_nonce", choose_slowly)
    async with two_gateways(settings, provider, migrated_url, accounts) as gateways:
        keep_shares(*gateways)
        for gateway in gateways:
            # One of them stood still while its keys were given away.
            gateway.services.settlements.settler.share_keys([accounts[0].address.lower()], (), ())
        await sell_six(gateways, chain)
        await until(lambda: chain.usdc_balance(WALLET) == 6 * 20_000)
        rows = await gateways[0].services.store._rows("SELECT nonce FROM sent_transactions")
    assert sorted(row["nonce"] for row in rows) == list(range(6))
    assert sent_by(chain, accounts[0]) == [6]


async def test_what_a_dead_node_has_signed_is_sent_by_another(
    settings, provider, migrated_url, accounts, chain
):
    with FaultyRpc(chain) as rpc, started_with(Waits(outcome_s=0.1, settlement=FAST)):
        rpc.faults["eth_sendRawTransaction"] = forgetful
        nodes = two_gateways(settings, provider, migrated_url, accounts, rpc)
        async with nodes as (first, second):
            keep_shares(second)
            await sell(second, Payer(chain))
            await until(lambda: "eth_sendRawTransaction" in rpc.seen)
            await second.services.settlements._drivers.stop(grace_s=0)
            await die(second.services.store)
            await first.services.store.nodes.renew(lease_s=60, now=time.time())
            await until(lambda: chain.usdc_balance(WALLET) == 20_000)
    sent = sent_by(chain, *accounts)
    assert (sent[:2], sum(sent)) == ([0, 0], 1)
