"""Payments for which the settlement key has no free nonce are closed in time, or settled."""

import attrs
import pytest
import structlog

from gateway.contracts import NoFreeNonce
from gateway.errors import ChainUnavailable
from gateway_demo.chain import FAUCET_KEY
from tests.gateway.settlement.outcomes.purchases import (
    bought,
    done,
    ended_as_one_task,
    held,
    later,
)
from tests.patience import until


class FullKey:
    """The journal of a key without a free nonce. `submits` counts the submits that failed."""

    def __init__(self, journal) -> None:
        self._write, self._count = journal.begin_settling, journal.waiting_of
        self.error = NoFreeNonce("0xa")
        self.submits = 0
        journal.begin_settling, journal.waiting_of = self._begin_settling, self._waiting_of

    async def _begin_settling(self, payment_id, transaction, *, now):
        if self.error is not None:
            self.submits += 1
            raise self.error
        return await self._write(payment_id, transaction, now=now)

    async def _waiting_of(self, signer, chain_nonce):
        if isinstance(self.error, NoFreeNonce):
            self.submits += 1
            return 64
        return await self._count(signer, chain_nonce)

    async def until_tried(self, times=3):
        target = self.submits + times
        await until(lambda: self.submits >= target)


@pytest.fixture
def key(gateway):
    settlements = gateway.services.settlements
    # One driver for each payment: the next one would check the chain at its start.
    settlements.timing = attrs.evolve(settlements.timing, drive_s=3600.0)
    return FullKey(gateway.services.context.journal)


async def test_a_payment_is_settled_once_a_nonce_is_free(gateway, payer, chain, key):
    task_id = await bought(gateway, payer.header())
    await key.until_tried()
    await held(gateway, task_id)
    key.error = None
    await ended_as_one_task(gateway, chain, task_id)


async def test_an_authorization_that_expires_while_the_key_is_full_is_released(
    gateway, payer, chain, clock, key
):
    task_id = await bought(gateway, payer.header())
    await key.until_tried()
    later(chain, clock, 900)
    task = await done(gateway, task_id)
    assert (task["status"], task["code"]) == ("failed", "PAYMENT_NOT_SETTLED")
    assert task["payment"]["state"] == "released"


async def settled_by_another(gateway, payer, chain, key):
    """Buy while the key is full, let a third party submit it, and return the task's id."""
    signed = payer.authorization()
    header = payer.header(nonce=signed.nonce, valid_before=signed.valid_before)
    task_id = await bought(gateway, header)
    await key.until_tried()
    signature = signed.sign(payer.account.key, chain.chain_id, chain.usdc)
    chain.send_transaction(FAUCET_KEY, chain.usdc, signed.call(signature))
    return task_id


async def test_a_third_party_that_settles_while_the_key_is_full_pays_for_the_task(
    gateway, payer, chain, key
):
    task_id = await settled_by_another(gateway, payer, chain, key)
    await ended_as_one_task(gateway, chain, task_id)


async def test_the_next_driver_closes_a_settled_payment_before_a_full_check(
    gateway, payer, chain, key
):
    settlements = gateway.services.settlements
    settlements.timing = attrs.evolve(settlements.timing, full_check_s=3600.0, drive_s=0.5)
    task_id = await settled_by_another(gateway, payer, chain, key)
    await ended_as_one_task(gateway, chain, task_id)


async def until_waited(gateway, payer, rpc, key):
    """Buy, and return the calls of the first submits after the response."""
    await bought(gateway, payer.header())
    await key.until_tried(1)
    rpc.seen.clear()
    await key.until_tried(5)
    return list(rpc.seen)


async def test_without_a_nonce_the_chain_is_not_read_before_the_next_full_check(
    gateway, payer, rpc, key
):
    settlements = gateway.services.settlements
    settlements.timing = attrs.evolve(settlements.timing, full_check_s=60.0, sweep_s=3600.0)
    with structlog.testing.capture_logs() as entries:
        calls = await until_waited(gateway, payer, rpc, key)
    # Each check of the chain reads the authorization's state; a simulation is a call, too.
    assert "eth_call" not in calls
    # The wait is logged once.
    assert [entry["event"] for entry in entries].count("payment.not_sent") == 1


async def test_after_another_failure_the_chain_is_read_before_each_submit(gateway, payer, rpc, key):
    settlements = gateway.services.settlements
    settlements.timing = attrs.evolve(settlements.timing, full_check_s=60.0, sweep_s=0.05)
    key.error = ChainUnavailable("silent")
    calls = await until_waited(gateway, payer, rpc, key)
    assert calls.count("eth_getBlockByNumber") >= 3
