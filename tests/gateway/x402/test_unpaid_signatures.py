"""New signatures over spent nonces: they take no resources and few calls."""

import asyncio

import attrs
import pytest

from gateway.payments.reconcile import EventSearch
from gateway.payments.settlement import SettlementTiming
from tests.authorizations import cancel
from tests.conftest import WALLET, Payer, buy, nothing_charged, running
from tests.proof.faults.proxy import error as error_of_proxy
from tests.proof.faults.proxy import says

PRICE = 20_000
SPENT = "invalid_exact_evm_nonce_already_used"
STRANGER = "0x" + "99" * 20
MAX_CALLS = 45


@pytest.fixture
def settings(settings, proxy):
    return attrs.evolve(settings, rpc_urls=(proxy.url,))


@pytest.fixture(autouse=True)
def _hurry(gateway):
    gateway.services.payments.search = EventSearch(pause_s=0.01)


def spend_elsewhere(chain, payer) -> bytes:
    """Spend a nonce by paying another account with it; returns the nonce."""
    signed = payer.authorization(to=STRANGER)
    signature = signed.sign(payer.account.key, chain.chain_id, chain.usdc)
    chain.send_transaction(payer.account.key, chain.usdc, signed.call(signature))
    return signed.nonce


def submit_ourselves(chain, payer):
    """Submit an authorization to the wallet as a third party does; returns the buyer's header."""
    signed = payer.authorization()
    signature = signed.sign(payer.account.key, chain.chain_id, chain.usdc)
    chain.send_transaction(payer.account.key, chain.usdc, signed.call(signature))
    return payer.header(nonce=signed.nonce, valid_before=signed.valid_before)


async def calls_of(gateway, chain, proxy, header, **fields):
    """Return (status, error, RPC calls) of a request that stores nothing."""
    async with nothing_charged(gateway, chain):
        before = len(proxy.seen)
        answer = await buy(gateway, header, **fields)
        calls = len(proxy.seen) - before
    return answer.status_code, (await answer.get_json())["error"], calls


@pytest.mark.parametrize("how", ["cancelled", "paid elsewhere"])
async def test_a_signature_over_a_nonce_that_did_not_pay_us_is_refused_at_once(
    gateway, chain, proxy, payer, how
):
    if how == "cancelled":
        nonce = payer.authorization().nonce
        cancel(chain, payer, nonce)
    else:
        nonce = spend_elsewhere(chain, payer)
    status, error, calls = await calls_of(gateway, chain, proxy, payer.header(nonce=nonce))
    assert (status, error) == (402, SPENT)
    assert calls < MAX_CALLS


async def test_a_nonce_that_was_spent_long_ago_costs_few_calls(gateway, chain, proxy, payer):
    nonce = spend_elsewhere(chain, payer)
    chain.mine(600)
    status, error, calls = await calls_of(gateway, chain, proxy, payer.header(nonce=nonce))
    assert (status, error) == (402, SPENT)
    assert calls < MAX_CALLS
    assert proxy.seen.count("eth_getLogs") == 1


async def test_a_nonce_that_was_spent_before_the_database_was_made_is_refused(
    settings, provider, chain, proxy, payer, tmp_path
):
    """It paid this wallet, but perhaps for a task that another database knows."""
    header = submit_ourselves(chain, payer)
    chain.advance(5)
    (tmp_path / "younger").mkdir()
    settings = attrs.evolve(settings, data_dir=tmp_path / "younger")
    async with running(settings, provider, now=lambda: float(chain.block.timestamp)) as gateway:
        gateway.services.payments.search = EventSearch(pause_s=0.01)
        await gateway.services.payments.cutoff_block()
        status, error, calls = await calls_of(gateway, chain, proxy, header)
    assert (status, error) == (402, SPENT)
    assert calls < MAX_CALLS


async def test_logs_that_do_not_show_yet_what_a_nonce_paid_for_hold_nothing(
    gateway, chain, proxy, payer
):
    """The buyer keeps the signature, and can use it once the endpoint has caught up.

    The endpoint offers no receipts of whole blocks.
    """
    header = submit_ourselves(chain, payer)
    proxy.break_call("eth_getLogs", says([]))
    proxy.break_call("eth_getBlockReceipts", error_of_proxy)
    status, error, calls = await calls_of(gateway, chain, proxy, header)
    assert status == 500
    assert "send the same request again" in error
    assert calls < 3 * MAX_CALLS  # three searches
    proxy.heal()
    answer = await buy(gateway, header)
    task = await gateway.wait((await answer.get_json())["taskId"])
    assert (task["status"], task["payment"]["state"]) == ("completed", "settled")
    assert chain.usdc_balance(WALLET) == PRICE


async def test_a_payment_that_is_open_asks_for_the_logs_of_one_block_first(gateway, chain, proxy):
    """Its nonce is spent, and the endpoint's logs do not show by which transaction."""
    gateway.services.payments.outcome_s = 0.5
    gateway.services.settlements.timing = SettlementTiming(poll_s=0.02, full_check_s=0.2)
    payer = Payer(chain)
    chain.set_automine(False)
    signed = payer.authorization()
    header = payer.header(nonce=signed.nonce, valid_before=signed.valid_before)
    answer = await buy(gateway, header)
    assert answer.status_code == 200
    ranges = []

    def empty(_proxy, request, _body):
        query = request["params"][0]
        ranges.append((int(query["fromBlock"], 16), int(query["toBlock"], 16)))
        return 200, b'{"jsonrpc":"2.0","id":%d,"result":[]}' % request["id"]

    proxy.break_call("eth_getLogs", empty)
    proxy.break_call("eth_getBlockReceipts", error_of_proxy)
    proxy.break_call(
        "eth_getTransactionReceipt",
        lambda _proxy, request, _body: (200, b'{"jsonrpc":"2.0","id":1,"result":null}'),
    )
    spent_in = chain.mine().number
    chain.mine(40)
    chain.set_automine(True)
    deadline = 3000
    while len(ranges) < 4 and deadline:
        deadline -= 1
        await asyncio.sleep(0.02)
    assert ranges[0] == ranges[2] == (spent_in, spent_in)
    proxy.heal()
    task = await gateway.wait((await answer.get_json())["taskId"])
    assert task["payment"]["state"] == "settled"
