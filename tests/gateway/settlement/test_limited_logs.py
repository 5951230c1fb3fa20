"""Endpoints that limit log queries to a few blocks, like free plans."""

import json

import attrs
import pytest

from gateway import ChainUnavailable
from gateway.chain.client import Web3Chain
from gateway.payments.reconcile import EventSearch
from gateway_operator.unused_transfers import list_unused
from tests.authorizations import cancel
from tests.conftest import WALLET, ScriptedProvider, buy, running
from tests.proof.faults.proxy import FaultProxy, limits_logs, says, unavailable
from tests.proof.faults.proxy import error as internal_error

LOGS = "eth_getLogs"
STATE = "eth_call authorizationState"
REFUSALS = {
    "names the limit": limits_logs(500, "query exceeds max block range {most}"),
    "names a range that works": limits_logs(
        10,
        "Under the Free tier plan, you can make eth_getLogs requests with up to a {most} block "
        "range. Based on your parameters, this block range should work: {works}",
        status=400,
        code=-32600,
    ),
    "names no number": limits_logs(64, "block range is too wide", status=413, code=-32062),
    "names two numbers": limits_logs(5, "{asked} blocks asked for, {most} allowed", code=-32005),
    "names thousands": limits_logs(1_000, "ranges over 1K blocks are not supported", code=-32614),
    "fails": limits_logs(300, "Internal error: too many results", status=500, code=-32603),
    "names what was asked": limits_logs(10, "block range 1999 exceeds the limit", code=-32000),
    "names a time": limits_logs(400, "query timeout exceeded, limit 10 seconds", code=-32000),
    "speaks of a rate": limits_logs(
        10, "Block range limit exceeded: {most} blocks; rate limits: 50"
    ),
    "has its own words": limits_logs(7, "Upgrade your plan.", status=400, code=-32701),
}


@pytest.fixture
def settings(settings, proxy):
    return attrs.evolve(settings, rpc_urls=(proxy.url,))


@pytest.fixture
async def reader(settings):
    chain = Web3Chain(settings)
    yield chain
    await chain.close()


def submit(chain, payer):
    """Submit a buyer's authorization as a third party does; returns the buyer's header."""
    signed = payer.authorization()
    signature = signed.sign(payer.account.key, chain.chain_id, chain.usdc)
    chain.send_transaction(payer.account.key, chain.usdc, signed.call(signature))
    return payer.header(nonce=signed.nonce, valid_before=signed.valid_before)


def forgets_state(words):
    """Return the fault of a node that keeps the state of its newest block only."""

    def fault(proxy, request, body):
        at = request["params"][1]
        if at == "latest" or at == {"blockHash": "0x" + proxy.chain.block.hash.hex()}:
            return 200, proxy.chain.rpc.answer(body)
        error = {"code": -32000, "message": words}
        return 200, json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}).encode()

    return fault


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
async def test_a_payment_that_somebody_else_submitted_is_sold(
    gateway, chain, proxy, payer, refusal
):
    gateway.services.payments.search = EventSearch(pause_s=0.01)
    header = submit(chain, payer)
    chain.mine(900)
    proxy.break_call(LOGS, refusal)
    answer = await buy(gateway, header)
    assert answer.status_code == 200
    task = await gateway.wait((await answer.get_json())["taskId"])
    assert (task["status"], task["payment"]["state"]) == ("completed", "settled")


@pytest.mark.parametrize("most", [64, 300, 2_000])
async def test_without_old_state_it_is_sold_by_logs(gateway, chain, proxy, payer, most):
    header = submit(chain, payer)
    chain.mine(900)
    proxy.break_call(STATE, forgets_state("missing trie node 12ab (path ) is not available"))
    proxy.break_call(LOGS, limits_logs(most, "at most {most} blocks"))
    answer = await buy(gateway, header)
    assert answer.status_code == 200
    task = await gateway.wait((await answer.get_json())["taskId"])
    assert (task["status"], task["payment"]["state"]) == ("completed", "settled")


async def test_an_unpaid_client_cannot_cause_long_searches(gateway, chain, proxy, payer):
    header = submit(chain, payer)
    chain.mine(900)
    proxy.break_call(STATE, forgets_state("missing trie node 12ab (path ) is not available"))
    proxy.break_call(LOGS, limits_logs(10, "at most {most} blocks"))
    answer = await buy(gateway, header)
    assert answer.status_code == 500
    assert "send the same request again" in (await answer.get_json())["error"]
    # Some ranges are refused before the limit is known.
    assert proxy.seen.count(LOGS) <= 30


@pytest.mark.parametrize(
    "words",
    [
        "missing trie node 0a3f (path ) state 0xbe is not available, not found",
        "required historical state unavailable (reexec=128)",
        "state at block #12 is pruned",
        "No state available for block 0x1b",
        "historical state 3fe2 is not available",
        "Archive data is not in your plan.",
        "header not found",
    ],
)
async def test_an_endpoint_without_old_state_is_asked_for_logs(gateway, chain, proxy, payer, words):
    header = submit(chain, payer)
    chain.mine(20)
    proxy.break_call(STATE, forgets_state(words))
    before = proxy.seen.count(STATE)
    answer = await buy(gateway, header)
    assert answer.status_code == 200
    task = await gateway.wait((await answer.get_json())["taskId"])
    assert (task["status"], task["payment"]["state"]) == ("completed", "settled")
    if words != "header not found":
        # Nothing is asked again: the state does not come back.
        assert proxy.seen.count(STATE) - before <= 30


async def test_the_logs_of_the_next_endpoint_count_where_one_lags(settings, chain, proxy, payer):
    proxy.break_call(LOGS, says([]))
    settings = attrs.evolve(settings, rpc_urls=(proxy.url, chain.rpc_url))
    async with running(settings, ScriptedProvider()) as gateway:
        await gateway.services.payments.cutoff_block()
        header = submit(chain, payer)
        chain.mine(5)
        assert (await buy(gateway, header)).status_code == 200


async def test_an_endpoint_with_a_hole_in_its_logs_releases_nothing(
    settings, chain, proxy, reader, payer
):
    """The other one has the log, and limits the range: it is asked for all of it."""
    payer.transfer(20_000)
    header_nonce = payer.authorization().nonce
    cancel(chain, payer, header_nonce)
    spent_in = chain.block.number
    chain.mine(600)
    proxy.break_call(LOGS, limits_logs(10, "at most {most} blocks"))
    with FaultProxy(chain) as holed:
        holed.break_call(LOGS, says([]))
        both = Web3Chain(attrs.evolve(settings, rpc_urls=(proxy.url, holed.url)))
        known = await both.head()
        search = {
            "from_block": 0,
            "to_block": known.number,
            "known": known,
        }
        account = payer.account.address.lower()
        found = await both.authorization_logs(account, "0x" + header_nonce.hex(), **search)
        assert [is_use for _, is_use in found] == [False]
        proxy.break_call(LOGS, unavailable)
        with pytest.raises(ChainUnavailable):
            await both.authorization_logs(account, "0x" + header_nonce.hex(), **search)
        await both.close()
    assert spent_in < known.number


async def test_the_range_that_an_endpoint_answers_for_is_remembered(chain, proxy, reader, payer):
    payer.transfer(20_000)
    chain.mine(900)
    proxy.break_call(LOGS, limits_logs(300, "at most {most} blocks"))
    for expected in (5, 4):
        before = proxy.seen.count(LOGS)
        found = await reader.transfer_logs(WALLET, from_block=0, to_block=chain.block.number)
        assert [each.amount_units for each in found] == [20_000]
        assert proxy.seen.count(LOGS) - before == expected


@pytest.mark.parametrize("most", [4, 20, 21, 64])
async def test_logs_of_several_parts_come_oldest_first_and_once(chain, proxy, reader, payer, most):
    for units in (1, 2, 3):
        payer.transfer(units)
        chain.mine(20)
    proxy.break_call(LOGS, limits_logs(most, "too many blocks"))
    for _ in range(2):
        found = await reader.transfer_logs(WALLET, from_block=0, to_block=chain.block.number)
        assert [each.amount_units for each in found] == [1, 2, 3]


async def test_a_refusal_of_one_block_is_a_failure(chain, proxy, reader):
    proxy.break_call(LOGS, limits_logs(0, "eth_getLogs is disabled"))
    with pytest.raises(ChainUnavailable) as caught:
        await reader.transfer_logs(WALLET, from_block=0, to_block=500)
    assert caught.value.details == "eth_getLogs is disabled"
    proxy.heal()
    before = proxy.seen.count(LOGS)
    await reader.transfer_logs(WALLET, from_block=0, to_block=chain.block.number)
    assert proxy.seen.count(LOGS) == before + 1


@pytest.mark.parametrize(
    ("status", "words", "code"),
    [
        (429, "Monthly capacity limit exceeded", 429),
        (200, "limit exceeded", -32005),
        (200, "project ID request rate exceeded", -32000),
        (200, "You have exceeded the RPS limit", -32000),
        (503, "Internal error", -32603),
    ],
)
async def test_what_is_no_limit_of_blocks_limits_none(
    chain, proxy, reader, payer, status, words, code
):
    payer.transfer(20_000)
    refusals = [limits_logs(0, words, status=status, code=code)] * 2

    def refuse_twice(*asked):
        return (refusals.pop() if refusals else limits_logs(2_000, ""))(*asked)

    proxy.break_call(LOGS, refuse_twice)
    found = await reader.transfer_logs(WALLET, from_block=0, to_block=chain.block.number)
    assert [each.amount_units for each in found] == [20_000]
    assert (proxy.seen.count(LOGS), reader.logs_limit()) == (3, None)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, b"block range too large, max 5"),
        (413, b""),
        (422, b'{"code": -32600, "message": "at most 5 blocks"}'),
        (400, b'[{"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "5 blocks"}}]'),
    ],
)
async def test_a_refusal_that_is_no_json_rpc_is_read(chain, proxy, reader, payer, status, body):
    payer.transfer(20_000)
    chain.mine(30)
    answered = limits_logs(5, "")

    def refuse(proxy, request, asked):
        own_status, answer = answered(proxy, request, asked)
        return (status, body) if b"error" in answer else (own_status, answer)

    proxy.break_call(LOGS, refuse)
    found = await reader.transfer_logs(WALLET, from_block=0, to_block=chain.block.number)
    assert [each.amount_units for each in found] == [20_000]


@pytest.mark.parametrize("status", [200, 400, 500])
async def test_a_transaction_that_is_known_counts_as_sent_with_any_status(proxy, reader, status):
    body = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"already known"}}'
    proxy.break_call("eth_sendRawTransaction", lambda *_: (status, body))
    await reader.send(b"\x02")


async def test_a_busy_endpoint_is_asked_for_the_same_range_again(chain, proxy, reader):
    answers = iter(["daily request count exceeded, request rate limited"] * 2)

    def busy(proxy, request, body):
        words = next(answers, None)
        return limits_logs(0 if words else 2_000, words or "")(proxy, request, body)

    proxy.break_call(LOGS, busy)
    chain.mine(50)
    await reader.transfer_logs(WALLET, from_block=0, to_block=50)
    assert proxy.seen.count(LOGS) == 3


async def test_an_endpoint_that_cannot_search_days_says_so_with_the_way_out(
    gateway, chain, proxy, payer
):
    payer.transfer(20_000)
    chain.mine(1_000)
    proxy.break_call(LOGS, limits_logs(10, "up to a {most} block range"))
    with pytest.raises(ChainUnavailable, match=r"RPC endpoint 1 .* 10 blocks .* GATEWAY_RPC_URLS"):
        await list_unused(gateway.services.chain, gateway.services.store, WALLET, days=7, hours=-1)


async def test_an_endpoint_without_a_limit_is_asked_where_another_has_too_narrow_a_one(
    settings, chain, proxy, payer
):
    payer.transfer(20_000)
    chain.mine(1_000)
    proxy.break_call(LOGS, limits_logs(10, "up to a {most} block range"))
    both = Web3Chain(attrs.evolve(settings, rpc_urls=(proxy.url, chain.rpc_url)))
    found = await both.transfer_logs(WALLET, from_block=0, to_block=chain.block.number)
    await both.close()
    assert [each.amount_units for each in found] == [20_000]


async def test_the_next_endpoint_is_asked_at_once_where_one_is_busy(settings, chain, proxy, payer):
    payer.transfer(20_000)
    proxy.break_call(LOGS, limits_logs(0, "too many requests", status=429))
    both = Web3Chain(attrs.evolve(settings, rpc_urls=(proxy.url, chain.rpc_url)))
    found = await both.transfer_logs(WALLET, from_block=0, to_block=chain.block.number)
    await both.close()
    assert [each.amount_units for each in found] == [20_000]
    assert proxy.seen.count(LOGS) == 1


async def test_a_method_that_is_not_there_is_not_asked_for_again(chain, proxy, reader):
    """geth uses the same words for it that others use for a missing block."""
    body = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"the method '
    body += b'eth_getBalance does not exist/is not available for this block"}}'
    proxy.break_call("eth_getBalance", lambda *_: (200, body))
    with pytest.raises(ChainUnavailable):
        await reader.gas_balance("0x" + "ab" * 20)
    assert proxy.seen.count("eth_getBalance") == 1


async def test_a_spent_nonce_is_never_told_that_nothing_was_charged(gateway, chain, proxy, payer):
    header = submit(chain, payer)
    proxy.break_call(LOGS, limits_logs(0, "eth_getLogs is disabled"))
    proxy.break_call("eth_getBlockReceipts", internal_error)
    answer = await buy(gateway, header)
    assert answer.status_code == 500
    error = (await answer.get_json())["error"]
    assert "send the same request again" in error
    assert "Nothing was charged" not in error
    proxy.heal()
    assert (await buy(gateway, header)).status_code == 200


async def test_a_spent_nonce_that_nobody_can_read_is_told_what_this_request_charged(
    gateway, chain, proxy, payer
):
    gateway.services.payments.search = EventSearch(pause_s=0.01)
    header = submit(chain, payer)
    proxy.break_call("eth_getBlockByNumber", unavailable)
    answer = await buy(gateway, header)
    error = (await answer.get_json())["error"]
    assert answer.status_code == 500
    assert "never charged twice" in error
    proxy.heal()
    assert (await buy(gateway, header)).status_code == 200
