"""With GATEWAY_SETTLEMENT_BATCH, payments that arrive during a send share a transaction."""

import asyncio

import attrs
import pytest

from gateway.chain.transactions import MULTICALL3
from gateway.errors import SettingsError
from gateway.settings import check_settings
from gateway_operator.sql.payment_lists import open_payments
from gateway_operator.sql.task_detail import find_task
from tests.conftest import WALLET, Payer, buy, new_account, running
from tests.gateway.settlement.faulty_rpc import gated
from tests.patience import PATIENCE_S, until
from tests.waits import FAST, Waits, started_with

PRICE = 20_000
BUYERS = 5


@pytest.fixture(autouse=True)
def _fast():
    with started_with(Waits(outcome_s=PATIENCE_S, settlement=FAST)):
        yield


@pytest.fixture
def gate(chain):
    with gated(chain) as endpoint:
        yield endpoint


@pytest.fixture
def settings(settings, gate):
    return attrs.evolve(settings, rpc_urls=(gate.url,), settlement_batch=10)


async def begin(gateway, payers) -> list[asyncio.Task]:
    """Let all buy at once; returns when each of their payments is reserved."""
    store = gateway.services.store
    buying = [asyncio.create_task(buy(gateway, payer.header())) for payer in payers]

    async def all_reserved():
        return len(await store.open_payments()) == len(payers)

    await until(all_reserved)
    return buying


async def end(gateway, buying) -> list[dict]:
    """Return the buyers' tasks once they are done."""
    answers = [await (await each).get_json() for each in buying]
    return [await gateway.wait(answer["taskId"]) for answer in answers]


def waiting(chain) -> list:
    with chain.node.lock:
        return list(chain.node.pool.waiting.values())


def sent_to(chain, tx_hash) -> str:
    return chain.rpc.result("eth_getTransactionByHash", tx_hash)["to"].lower()


async def test_who_comes_while_another_is_sent_shares_one_transaction(gateway, chain, gate):
    buying = await begin(gateway, [Payer(chain) for _ in range(BUYERS)])
    gate.heal()
    tasks = await end(gateway, buying)
    assert {task["payment"]["state"] for task in tasks} == {"settled"}
    assert chain.usdc_balance(WALLET) == BUYERS * PRICE
    hashes = [task["payment"]["transaction"] for task in tasks]
    assert len({*hashes}) < BUYERS
    shared = next(tx_hash for tx_hash in hashes if hashes.count(tx_hash) > 1)
    assert sent_to(chain, shared) == MULTICALL3
    store = gateway.services.store
    for task, tx_hash in zip(tasks, hashes, strict=True):
        facts = await store.read(find_task, task["taskId"])
        assert [one.tx_hash for one in facts.transactions] == [tx_hash]


async def test_a_lone_buyer_waits_for_nobody(gateway, chain, gate, payer):
    gate.heal()
    (task,) = await end(gateway, [asyncio.create_task(buy(gateway, payer.header()))])
    assert sent_to(chain, task["payment"]["transaction"]) == chain.usdc.lower()


async def test_without_the_setting_nobody_shares(settings, provider, chain, gate):
    settings = attrs.evolve(settings, settlement_batch=1)
    async with running(settings, provider) as gateway:
        buying = await begin(gateway, [Payer(chain) for _ in range(BUYERS)])
        gate.heal()
        tasks = await end(gateway, buying)
    assert len({task["payment"]["transaction"] for task in tasks}) == BUYERS


async def test_who_empties_the_account_spoils_no_batch_and_is_barred(
    gateway, chain, gate, clock, provider
):
    payers = [Payer(chain) for _ in range(BUYERS)]
    buying = await begin(gateway, payers)
    chain.set_automine(False)
    gate.heal()
    store = gateway.services.store

    async def all_sent():
        rows = await store.read(open_payments, BUYERS)
        known = {"0x" + one.hash.hex() for one in waiting(chain)}
        return len(rows) == BUYERS and {row.tx_hash for row in rows} <= known and rows

    rows = await until(all_sent)
    hashes = [row.tx_hash for row in rows]
    spoiled = next(row for row in rows if hashes.count(row.tx_hash) > 1)
    spoiler = next(each for each in payers if each.account.address.lower() == spoiled.payer)
    # It is sent again, after the spoiler's transaction.
    with chain.node.lock:
        chain.drop(spoiled.tx_hash)
        chain.send_raw(
            chain.sign_transaction(
                spoiler.account.key,
                chain.usdc,
                _spend_all(chain, spoiler),
                tip_wei=10**9,
                max_fee_wei=10**11,
            )
        )
        chain.set_automine(True)

    async def judged():
        return await store.payers.failures(since=0)

    (failure,) = await until(judged)
    assert (failure.failure, failure.payer) == ("drained", spoiled.payer)
    assert failure.tx_hash == spoiled.tx_hash
    receipt = chain.receipt(spoiled.tx_hash)
    # The transaction itself succeeded, and the spoiler is accountable for a share of its gas.
    assert receipt["status"] == "0x1"
    used, price = (int(receipt[name], 16) for name in ("gasUsed", "effectiveGasPrice"))
    share = used * price // hashes.count(spoiled.tx_hash)
    assert 0 < failure.fee_wei <= share + 10**12
    clock.offset_s += 601
    chain.advance(601)
    answers = [await each for each in buying]
    assert sorted(answer.status_code for answer in answers) == [*[200] * (BUYERS - 1), 402]
    for answer in answers:
        if answer.status_code == 200:
            task = await gateway.wait((await answer.get_json())["taskId"])
            assert task["payment"]["state"] == "settled"
    assert chain.usdc_balance(WALLET) == (BUYERS - 1) * PRICE
    assert len(provider.requests) == BUYERS - 1


def _spend_all(chain, payer):
    from gateway_demo.token import transfer_call

    return transfer_call(new_account().address, chain.usdc_balance(payer.account.address))


async def test_an_account_with_code_is_never_in_a_batch(gateway, chain, gate, monkeypatch):
    """Its code could use up the gas of the others."""
    payers = [Payer(chain) for _ in range(BUYERS)]
    buying = await begin(gateway, payers)
    code = gateway.services.chain.code
    coded = {payer.account.address.lower() for payer in payers}

    async def code_of(address):
        return b"\xef\x01\x00" if address in coded else await code(address)

    monkeypatch.setattr(gateway.services.chain, "code", code_of)
    gate.heal()
    tasks = await end(gateway, buying)
    assert len({task["payment"]["transaction"] for task in tasks}) == BUYERS


@pytest.mark.parametrize("code", [b"", b"\xfe"], ids=["nothing there", "something else there"])
async def test_without_multicall3_each_is_settled_alone(gateway, chain, gate, monkeypatch, code):
    buying = await begin(gateway, [Payer(chain) for _ in range(BUYERS)])
    services = gateway.services
    code_of, call = services.chain.code, services.chain.call

    async def code_at(address):
        return code if address == MULTICALL3 else await code_of(address)

    async def call_of(data, *, to=None, **more):
        return b"" if to == MULTICALL3 else await call(data, to=to, **more)

    monkeypatch.setattr(services.chain, "code", code_at)
    monkeypatch.setattr(services.chain, "call", call_of)
    gate.heal()
    tasks = await end(gateway, buying)
    assert {task["payment"]["state"] for task in tasks} == {"settled"}
    assert len({task["payment"]["transaction"] for task in tasks}) == BUYERS


async def test_after_too_much_burned_gas_nobody_shares(gateway, chain, gate, monkeypatch):
    buying = await begin(gateway, [Payer(chain) for _ in range(BUYERS)])

    async def failed_gas(*, since):
        return 10**18

    monkeypatch.setattr(gateway.services.store, "failed_gas", failed_gas)
    gate.heal()
    tasks = await end(gateway, buying)
    assert len({task["payment"]["transaction"] for task in tasks}) == BUYERS


@pytest.mark.parametrize("size", [0, 101])
def test_a_batch_has_from_one_to_a_hundred_payments(settings, size):
    with pytest.raises(SettingsError, match="GATEWAY_SETTLEMENT_BATCH is not right"):
        check_settings(attrs.evolve(settings, settlement_batch=size))
