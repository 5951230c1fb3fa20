"""Purchases are settled side by side, by one key or by several."""

import asyncio
import threading
from collections import Counter
from functools import partial

import attrs
import pytest
from eth_account import Account

from gateway.app import create_app
from gateway.contracts import NoFreeNonce
from gateway.errors import SettingsError
from gateway.running.facts_of_parts import find_conditions
from gateway.settings import check_settings
from tests.conftest import WALLET, Payer, buy, operators_rows, running
from tests.gateway.settlement.faulty_rpc import FaultyRpc

BUYERS = 6
PATIENCE_S = 30


def new_key(chain, eth_wei=10**18) -> Account:
    account = Account.create()
    chain.fund(account.address, eth_wei=eth_wei, usdc_units=0)
    return account


def listed(*accounts) -> str:
    return ",".join(account.key.hex() for account in accounts)


def with_keys(settings, *accounts):
    return attrs.evolve(settings, settlement_key="", settlement_keys=listed(*accounts))


async def buy_all(gateway, chain, count=BUYERS) -> None:
    """Let `count` buyers buy at once; each gets a paid task."""
    headers = [Payer(chain).header() for _ in range(count)]
    answers = await asyncio.gather(*(buy(gateway, header) for header in headers))
    assert [answer.status_code for answer in answers] == [200] * count
    tasks = [await answer.get_json() for answer in answers]
    assert len({task["taskId"] for task in tasks}) == count
    for task in tasks:
        assert (await gateway.wait(task["taskId"]))["payment"]["state"] == "settled"


def sent_by(chain, *accounts) -> list[int]:
    counts = [
        chain.rpc.result("eth_getTransactionCount", account.address, "latest")
        for account in accounts
    ]
    return [int(count, 16) if isinstance(count, str) else count for count in counts]


class Together(FaultyRpc):
    """An endpoint that responds to a broadcast only when several are in progress."""

    def __init__(self, chain, parties: int) -> None:
        super().__init__(chain)
        self._barrier = threading.Barrier(parties)
        self.faults["eth_sendRawTransaction"] = self._wait

    def _wait(self, rpc, request, body: bytes) -> bytes:
        self._barrier.wait(PATIENCE_S)
        return self.chain.rpc.answer(body)

    def __exit__(self, *_):
        self._barrier.abort()
        super().__exit__()


async def test_no_broadcast_waits_for_another(settings, chain, gas_key, provider):
    with Together(chain, parties=4) as rpc:
        settings = attrs.evolve(settings, rpc_urls=(rpc.url,))
        async with running(settings, provider) as gateway:
            await buy_all(gateway, chain, count=4)
    assert sent_by(chain, gas_key) == [4]
    assert chain.usdc_balance(WALLET) == 4 * 20_000


async def test_several_keys_share_the_settlements(settings, chain, provider):
    first, second = new_key(chain), new_key(chain)
    with Together(chain, parties=BUYERS) as rpc:
        settings = attrs.evolve(with_keys(settings, first, second), rpc_urls=(rpc.url,))
        async with running(settings, provider) as gateway:
            await buy_all(gateway, chain)
    sent = sent_by(chain, first, second)
    assert sum(sent) == BUYERS
    assert min(sent) > 0
    assert chain.usdc_balance(WALLET) == BUYERS * 20_000


async def test_a_key_without_gas_is_passed_over(settings, chain, provider):
    poor, rich = new_key(chain, eth_wei=1), new_key(chain)
    settings = with_keys(settings, poor, rich)
    async with running(settings, provider) as gateway:
        await buy_all(gateway, chain)
        assert (await operators_rows(gateway))[1]["settlement"]["ok"]
        about = gateway.services.settlements.about.split("; ")
    assert sent_by(chain, poor, rich) == [0, BUYERS]
    assert [poor.address.lower() in about[0], rich.address.lower() in about[1]] == [True, True]
    assert "enough for about 0 settlements" in about[0]


def refuse_first(journal) -> None:
    """Let the first submit of each payment find no free nonce: it writes twice at most."""
    write, refused = journal.begin_settling, Counter()

    async def find_none(payment_id, *arguments, **named):
        refused[payment_id] += 1
        if refused[payment_id] <= 2:
            raise NoFreeNonce("0xa")
        return await write(payment_id, *arguments, **named)

    journal.begin_settling = find_none


async def test_the_operator_learns_that_payments_wait_for_a_key(settings, chain, provider, clock):
    async with running(settings, provider, now=clock) as gateway:
        find = partial(find_conditions, gateway.services)
        await buy_all(gateway, chain, count=1)
        assert "keys_busy" not in {one.name for one in await find()}
        refuse_first(gateway.services.context.journal)
        for _ in range(3):
            await buy_all(gateway, chain, count=5)
            clock.offset_s += 60
        (found,) = [one for one in await find() if one.name == "keys_busy"]
        assert "GATEWAY_SETTLEMENT_KEYS" in found.action


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (lambda one, two: {"settlement_key": one.key.hex()}, "both set"),
        (lambda one, two: {"settlement_keys": listed(one, two, one)}, "lists one key twice"),
        (lambda one, two: {"wallet": two.address}, "GATEWAY_SETTLEMENT_KEYS is the private key of"),
        (lambda one, two: {"refund_key": two.key.hex()}, "is the settlement key"),
    ],
)
async def test_keys_that_do_not_fit_stop_the_start(settings, changes, words):
    one, two = Account.create(), Account.create()
    settings = attrs.evolve(with_keys(settings, one, two), **changes(one, two))
    with pytest.raises(SettingsError, match=words):
        create_app(settings)


@pytest.mark.parametrize("keys", ["0x12", "1" * 64 + ",", "1" * 64 + " " + "2" * 64])
def test_a_list_of_keys_is_read_strictly(settings, keys):
    settings = attrs.evolve(settings, settlement_key="", settlement_keys=keys)
    with pytest.raises(SettingsError, match="GATEWAY_SETTLEMENT_KEYS is not right"):
        check_settings(settings)
