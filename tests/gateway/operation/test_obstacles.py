"""Obstacles to settling x402 are reported: to the operator, and to clients that ask for a price."""

import contextlib
import json
import time

import attrs
import pytest
import structlog

from gateway_check.commands.check import run_checks
from gateway_demo.chain import FAUCET_KEY
from gateway_demo.token import call_data
from tests.authorizations import decoded
from tests.conftest import WALLET, buy, nothing_charged, operators_rows, running
from tests.proof.faults.proxy import FaultProxy

X402 = "settlement"
DIRECT_WORKS = "A direct USDC transfer works."


def call_token(chain, name, *addresses):
    """Call a function of the token that only Circle may call on the real one."""
    chain.send_transaction(
        FAUCET_KEY, chain.usdc, call_data(name, ["address"] * len(addresses), *addresses)
    )


def wallet_without_gas(settings, gas_key, chain):
    """Return settings whose settlement key is nearly empty."""
    from eth_account import Account

    poor = Account.create()
    chain.fund(poor.address, eth_wei=10**12, usdc_units=0)
    return attrs.evolve(settings, settlement_key=poor.key.hex()), poor.address.lower()


async def x402_row(gateway) -> dict:
    """Return the operator's row, with new checks."""
    gateway.services.shared_checks.ttl_s = 0.0
    return (await operators_rows(gateway))[1][X402]


async def unpaid_error(gateway) -> str:
    answer = await buy(gateway, None)
    assert answer.status_code == 402
    body = await answer.get_json()
    offered = decoded(answer.headers["PAYMENT-REQUIRED"])
    is_whole = body["error"].startswith("Payment required")
    assert bool(offered["accepts"]) == bool(body["accepts"]) == is_whole
    assert is_whole or offered["error"] == body["error"]
    return body["error"]


async def check_now(gateway):
    await gateway.services.settlements.obstacles.refresh()


@contextlib.contextmanager
def logged():
    with structlog.testing.capture_logs() as entries:
        yield entries


def stops(entries):
    return [entry for entry in entries if entry["event"] == "settlement.not_ready"]


# -- gas


async def test_an_empty_gas_wallet_is_named_with_what_it_holds(
    settings, provider, chain, payer, gas_key
):
    poor, address = wallet_without_gas(settings, gas_key, chain)
    async with running(poor, provider) as gateway:
        await gateway.services.lifecycle.warmed.wait()
        row = await x402_row(gateway)
        assert (row["ok"], row["stops"]) == (False, "x402")
        assert f"{address} holds 0.000001 ETH" in row["problem"]
        assert "enough for about 1 settlement." in row["problem"]
        async with nothing_charged(gateway, chain):
            answer = await buy(gateway, payer.header())
        assert answer.status_code == 500
        body = await answer.get_json()
        assert body["code"] == "EXECUTION_ERROR"
        assert DIRECT_WORKS in body["error"]
        assert address not in json.dumps(body)


async def test_who_asks_for_the_price_is_told_that_x402_cannot_be_settled_now(
    settings, provider, chain, gas_key
):
    """From cached data: an unpaid request causes no call to the chain."""
    with FaultProxy(chain) as proxy:
        poor, address = wallet_without_gas(settings, gas_key, chain)
        async with running(attrs.evolve(poor, rpc_urls=(proxy.url,)), provider) as gateway:
            await gateway.silence_background()
            await check_now(gateway)
            proxy.seen.clear()
            assert DIRECT_WORKS in await unpaid_error(gateway)
            assert proxy.seen == []
            chain.fund(address, usdc_units=0)
            await check_now(gateway)
            assert (await unpaid_error(gateway)).startswith("Payment required: 0.02 USDC")


async def test_an_obstacle_is_logged_once_until_it_is_gone(
    settings, provider, chain, gas_key, payer, monkeypatch
):
    poor, address = wallet_without_gas(settings, gas_key, chain)
    async with running(poor, provider) as gateway:
        await gateway.services.lifecycle.warmed.wait()
        gateway.services.settlements.obstacles._known.clear()
        monkeypatch.setattr("gateway.payments.obstacles._log", structlog.get_logger())
        with logged() as entries:
            for _ in range(3):
                await check_now(gateway)
                await buy(gateway, payer.header())
        (entry,) = stops(entries)
        assert address in entry["problem"]
        chain.fund(address, usdc_units=0)
        with logged() as entries:
            for _ in range(2):
                await check_now(gateway)
        assert [entry["event"] for entry in entries] == ["settlement.ready"]
        assert (await buy(gateway, payer.header())).status_code == 200


async def test_dear_gas_is_not_called_an_empty_wallet(settings, provider, chain):
    cheap = attrs.evolve(settings, max_fee_gwei=0.000_000_1)
    async with running(cheap, provider) as gateway:
        problem = (await x402_row(gateway))["problem"]
        assert "GATEWAY_MAX_FEE_GWEI" in problem
        assert "holds" not in problem


# -- the token


async def test_a_paused_token_stops_x402_and_takes_nothing(gateway, payer, chain):
    header = payer.header()
    call_token(chain, "pause")
    async with nothing_charged(gateway, chain):
        answer = await buy(gateway, header)
    assert answer.status_code == 500
    body = await answer.get_json()
    assert (body["code"], "paused" in body["error"]) == ("EXECUTION_ERROR", True)
    await check_now(gateway)
    assert "paused" in (await x402_row(gateway))["problem"]
    assert "paused" in await unpaid_error(gateway)
    call_token(chain, "unpause")
    await check_now(gateway)
    assert (await x402_row(gateway))["ok"]
    assert (await buy(gateway, header)).status_code == 200


async def test_a_blacklisted_gateway_wallet_stops_x402(gateway, payer, chain):
    header = payer.header()
    call_token(chain, "blacklist", WALLET)
    async with nothing_charged(gateway, chain):
        answer = await buy(gateway, header)
    body = await answer.get_json()
    assert (answer.status_code, body["code"]) == (500, "EXECUTION_ERROR")
    await check_now(gateway)
    assert f"blacklists {WALLET}" in (await x402_row(gateway))["problem"]
    assert DIRECT_WORKS not in await unpaid_error(gateway)


async def test_a_blacklisted_payer_is_told_so_and_nobody_else_is_stopped(gateway, payer, chain):
    header = payer.header()
    call_token(chain, "blacklist", payer.account.address)
    async with nothing_charged(gateway, chain):
        answer = await buy(gateway, header)
    assert answer.status_code == 402
    assert "blacklists the payer's account" in (await answer.get_json())["error"]
    await check_now(gateway)
    assert (await x402_row(gateway))["ok"]


@pytest.mark.parametrize("obstacle", ["pause", "blacklist"])
async def test_what_the_payer_has_paid_already_is_served_all_the_same(
    gateway, payer, chain, obstacle
):
    """A 402 would make the payer pay again; the token reports "paused" before "used"."""
    # A check of obstacles after the pause would stop the sale with a 500 before that.
    await gateway.silence_background()
    signed = payer.authorization()
    header = payer.header(nonce=signed.nonce, valid_before=signed.valid_before)
    signature = signed.sign(payer.account.key, chain.chain_id, chain.usdc)
    chain.send_transaction(FAUCET_KEY, chain.usdc, signed.call(signature))
    call_token(chain, obstacle, *([payer.account.address] if obstacle == "blacklist" else []))
    answer = await buy(gateway, header)
    assert answer.status_code == 200
    task = await gateway.wait((await answer.get_json())["taskId"])
    assert task["payment"]["state"] == "settled"


# -- the clock


@pytest.mark.parametrize(
    ("offset_s", "words"),
    [(600, ("ahead of", 600)), (-600, ("behind", 600)), (62, ("ahead of", 62))],
)
async def test_a_clock_that_is_far_off_stops_x402_and_says_by_how_much(
    settings, provider, payer, chain, clock, offset_s, words
):
    clock.offset_s = offset_s + (1 if offset_s > 0 else -1)
    async with running(settings, provider, now=clock) as gateway:
        await gateway.services.lifecycle.warmed.wait()
        row = await x402_row(gateway)
        assert (row["ok"], row["stops"]) == (False, "x402")
        side, seconds = words
        assert side in row["problem"]
        shown = next(int(word) for word in row["problem"].split() if word.isdigit())
        assert abs(shown - seconds) <= 30  # of a slow machine
        async with nothing_charged(gateway, chain):
            answer = await buy(gateway, payer.header())
        assert (answer.status_code, (await answer.get_json())["code"]) == (500, "EXECUTION_ERROR")
        assert DIRECT_WORKS in await unpaid_error(gateway)
        clock.offset_s = 0
        await check_now(gateway)
        assert (await buy(gateway, payer.header())).status_code == 200


async def test_a_clock_that_is_a_little_off_is_only_warned_of_once(
    settings, provider, payer, chain, clock, monkeypatch
):
    async with running(settings, provider, now=clock) as gateway:
        await gateway.services.lifecycle.warmed.wait()
        monkeypatch.setattr("gateway.payments.obstacles._log", structlog.get_logger())
        with logged() as entries:
            for _ in range(3):
                clock.frozen_at = chain.node.now_ms / 1000 - 30  # however slow the machine is
                await check_now(gateway)
        assert [entry["event"] for entry in entries] == ["clock.off"]
        assert (await x402_row(gateway))["ok"]


async def test_an_endpoint_that_has_stopped_is_not_taken_for_a_wrong_clock(
    settings, provider, chain
):
    old = chain.rpc.result("eth_getBlockByNumber", "latest", False)
    old = old | {"timestamp": hex(int(time.time()) - 900)}

    def stopped(proxy, request, body):
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": old}
        return 200, json.dumps(answer).encode()

    with FaultProxy(chain) as proxy:
        proxy.faults["eth_getBlockByNumber"] = stopped
        two = attrs.evolve(settings, rpc_urls=(proxy.url, chain.rpc_url))
        async with running(two, provider) as gateway:
            await gateway.services.lifecycle.warmed.wait()
            assert (await x402_row(gateway))["ok"]
        async with running(attrs.evolve(two, rpc_urls=(proxy.url,)), provider) as gateway:
            await gateway.services.lifecycle.warmed.wait()
            assert "endpoint has stopped" in (await x402_row(gateway))["problem"]


# -- `gateway check`


def checked(settings, monkeypatch) -> dict:
    monkeypatch.setattr("gateway_check.commands.check.load_settings", lambda: settings)
    return {row.name: row for row in run_checks()}


def test_gateway_check_names_each_obstacle(settings, chain, gas_key, monkeypatch):
    rows = checked(settings, monkeypatch)
    assert "enough for about" in rows["settlement"].found
    assert all(rows[name].ok for name in ("clock", "token", "settlement"))
    poor, address = wallet_without_gas(settings, gas_key, chain)
    call_token(chain, "pause")
    chain.node._offset_s += 700
    rows = checked(poor, monkeypatch)
    assert not any(rows[name].ok for name in ("clock", "token", "settlement"))
    assert f"{address} holds 0.000001 ETH" in rows["settlement"].found
    assert "behind the newest block" in rows["clock"].found
    assert "paused" in rows["token"].found
