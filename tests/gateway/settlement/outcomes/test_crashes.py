"""A crash in each state of a payment, then a new process on the same files."""

import asyncio

import pytest

from gateway.payments import Payments
from tests.conftest import WALLET, running
from tests.gateway.settlement.faulty_rpc import hangs, silent
from tests.gateway.settlement.outcomes.purchases import (
    PRICE,
    abandoned,
    bought,
    buy,
    done,
    ended_as_one_task,
    later,
    never,
    shown,
    until_waiting,
    waiting,
)
from tests.patience import until


# Each returns the condition that a payment has come this far.
def _before_t2(gateway, rpc, chain):
    gateway.services.settlements.settler.submit = never
    return lambda: True


def _before_sending(gateway, rpc, chain):
    rpc.faults["eth_sendRawTransaction"] = silent
    return lambda: "eth_sendRawTransaction" in rpc.seen


def _before_it_is_mined(gateway, rpc, chain):
    chain.set_automine(False)
    return lambda: waiting(chain)


def _before_t3(gateway, rpc, chain):
    rpc.faults |= {"eth_getTransactionReceipt": silent, "eth_getLogs": silent}
    return lambda: chain.usdc_balance(WALLET) == PRICE


@pytest.mark.parametrize(
    ("stop", "state"),
    [
        (_before_t2, "reserved"),
        (_before_sending, "settling"),
        (_before_it_is_mined, "settling"),
        (_before_t3, "settling"),
    ],
    ids=["after T1", "after T2", "after sending", "after mining"],
)
async def test_a_crash_in_any_state_costs_nobody_anything(
    settings, provider, clock, chain, payer, rpc, stop, state
):
    header = payer.header()
    async with abandoned(settings, provider, clock) as gateway:
        has_come_so_far = stop(gateway, rpc, chain)
        task_id = await bought(gateway, header)
        await until(has_come_so_far)
        assert (await gateway.services.store.counts())["payments"] == {state: 1}
    rpc.heal()
    chain.set_automine(True)
    async with running(settings, provider, now=clock) as gateway:
        await ended_as_one_task(gateway, chain, task_id)
        assert await bought(gateway, header) == task_id
    assert chain.usdc_balance(WALLET) == PRICE
    assert len(provider.requests) == 1


async def test_a_crash_of_the_request_itself_is_healed_by_the_same_header(
    settings, provider, clock, chain, payer, rpc
):
    """The client got no response at all; it sends the same header to the new process."""
    header = payer.header()
    async with abandoned(settings, provider, clock) as gateway:
        rpc.faults["eth_sendRawTransaction"] = hangs
        request = asyncio.create_task(buy(gateway, header))
        await until(gateway.services.store.open_payments)
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
    rpc.heal()
    async with running(settings, provider, now=clock) as gateway:
        await ended_as_one_task(gateway, chain, await bought(gateway, header))


async def test_an_authorization_expires_while_the_gateway_is_down(
    settings, provider, clock, chain, payer, rpc
):
    async with abandoned(settings, provider, clock) as gateway:
        rpc.faults["eth_sendRawTransaction"] = silent
        task_id = await bought(gateway, payer.header())
    later(chain, clock, 3600)
    rpc.heal()
    async with running(settings, provider, now=clock) as gateway:
        assert (await done(gateway, task_id))["code"] == "PAYMENT_NOT_SETTLED"
    assert chain.usdc_balance(WALLET) == 0


async def test_a_payment_mined_while_the_gateway_is_down_is_found_days_later(
    settings, provider, clock, chain, payer, rpc
):
    async with abandoned(settings, provider, clock) as gateway:
        chain.set_automine(False)
        task_id = await bought(gateway, payer.header())
        await until_waiting(chain, 1)
    chain.mine()
    later(chain, clock, 3 * 86_400)
    chain.set_automine(True)
    async with running(settings, provider, now=clock) as gateway:
        await ended_as_one_task(gateway, chain, task_id)


async def test_whatever_fails_while_warming_up_open_payments_are_closed(
    settings, provider, clock, chain, payer, rpc, monkeypatch
):
    async with abandoned(settings, provider, clock) as gateway:
        rpc.faults["eth_sendRawTransaction"] = silent
        task_id = await bought(gateway, payer.header())
    rpc.heal()

    async def fails(self):
        raise OSError("no space left on device")

    monkeypatch.setattr(Payments, "cutoff_block", fails)
    async with running(settings, provider, now=clock) as gateway:

        async def is_done():
            return (await shown(gateway, task_id))["done"]

        await until(is_done)
