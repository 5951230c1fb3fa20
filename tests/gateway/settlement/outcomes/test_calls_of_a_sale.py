"""Which RPC calls a sale by a plain account makes, and when it is simulated again."""

import asyncio

import attrs
import pytest
import structlog

from gateway.payments.settlement import SettlementTiming
from gateway_local_settler import recent_checks
from tests.conftest import buy
from tests.waits import Waits, started_with

SIMULATE, SEND = "eth_call", "eth_sendRawTransaction"


@pytest.fixture(autouse=True)
def _fast():
    # No sweep and no second submit asks beside them.
    calm = SettlementTiming(full_check_s=60.0, sweep_s=3600.0)
    with started_with(Waits(outcome_s=20.0, settlement=calm)):
        yield


async def calls_of(gateway, rpc, payer) -> list[str]:
    """Buy once; returns the calls up to the response."""
    rpc.seen.clear()
    answer = await buy(gateway, payer.header())
    assert answer.status_code == 200, await answer.get_json()
    return list(rpc.seen)


async def test_a_sale_is_simulated_once_before_its_transaction(gateway, rpc, payer, monkeypatch):
    # However slow the machine is.
    monkeypatch.setattr(recent_checks, "FRESH_S", 3600.0)
    await calls_of(gateway, rpc, payer)
    calls = await calls_of(gateway, rpc, payer)
    before = calls[: calls.index(SEND)]
    assert before.count(SIMULATE) == before.count("eth_getTransactionCount") == 1
    # The simulation shows whether the payer has got code since it last bought.
    assert "eth_getCode" not in before


async def test_a_sale_is_simulated_again_if_its_check_is_old(gateway, rpc, payer, monkeypatch):
    monkeypatch.setattr(recent_checks, "FRESH_S", 3600.0)
    monkeypatch.setattr(recent_checks.Reading, "is_fresh", lambda self: False)
    # The start reads the chain beside the first one.
    await calls_of(gateway, rpc, payer)
    calls = await calls_of(gateway, rpc, payer)
    assert calls[: calls.index(SEND)].count(SIMULATE) == 2


async def test_a_payer_whose_money_is_gone_is_refused_by_the_one_simulation(
    gateway, rpc, chain, payer
):
    await calls_of(gateway, rpc, payer)
    chain.transfer_usdc(
        payer.account.key, "0x" + "99" * 20, chain.usdc_balance(payer.account.address)
    )
    rpc.seen.clear()
    answer = await buy(gateway, payer.header())
    assert answer.status_code == 402
    assert SEND not in rpc.seen


async def fails(authorization):
    raise TypeError("a settler's mistake")


async def hangs(authorization):
    await asyncio.sleep(3600)


def is_another_method(authorization):
    """A settler of an earlier version may have one by this name."""


@pytest.mark.parametrize("prepare", [fails, hangs, is_another_method])
async def test_a_sale_does_not_depend_on_what_is_read_ahead(gateway, payer, prepare):
    settlements = gateway.services.settlements
    settlements.timing = attrs.evolve(settlements.timing, prepare_s=0.05)
    settlements.settler.prepare = prepare
    with structlog.testing.capture_logs() as entries:
        answer = await buy(gateway, payer.header())
    assert answer.status_code == 200, await answer.get_json()
    assert "payment.not_prepared" in [entry["event"] for entry in entries]
