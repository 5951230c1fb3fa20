"""Only facts of the chain close an unknown outcome."""

import asyncio
import contextlib

import attrs

from gateway import hookimpl
from gateway_demo.chain import FAUCET_KEY
from tests.conftest import running
from tests.gateway.settlement.faulty_rpc import FaultyRpc, knows_nothing_of_the_nonce, says, silent
from tests.gateway.settlement.outcomes.purchases import (
    bought,
    ended_as_one_task,
    held,
    later,
    until_paid,
)


class OddSettler:
    """A third party's settler with undocumented errors."""

    @hookimpl
    def register_settlers(self, register, context):
        register("odd", lambda: self)

    async def check_ready(self):
        return

    async def check(self, authorization, quote):
        return

    async def submit(self, payment):
        raise LookupError("a bug")

    async def tend(self):
        raise LookupError("a bug")

    async def close(self):
        return


async def test_a_settler_that_raises_anything_leaves_the_facts_to_the_chain(
    settings, payer, chain, clock, provider
):
    odd = attrs.evolve(settings, settlement="odd")
    async with running(odd, provider, [OddSettler()], now=clock) as gateway:
        gateway.chain = chain
        signed = payer.authorization()
        header = payer.header(nonce=signed.nonce, valid_before=signed.valid_before)
        task_id = await bought(gateway, header)
        signature = signed.sign(payer.account.key, chain.chain_id, chain.usdc)
        chain.send_transaction(FAUCET_KEY, chain.usdc, signed.call(signature))
        await ended_as_one_task(gateway, chain, task_id)


@contextlib.asynccontextmanager
async def paid_but_unseen(settings, provider, clock, chain, payer, rpc):
    """Yield a gateway whose payment is mined; its endpoint hides receipts and logs."""
    hidden = {"eth_getTransactionReceipt": silent, "eth_getLogs": silent}
    async with running(settings, provider, now=clock) as gateway:
        rpc.faults |= hidden
        task_id = await bought(gateway, payer.header())
        await until_paid(chain)
        await held(gateway, task_id)
        yield gateway, task_id


async def test_an_endpoint_that_lags_proves_no_absence_of_logs(
    settings, provider, clock, chain, payer, rpc
):
    """The second endpoint stopped before the payment: it lacks the logs and the block."""
    old = chain.rpc.result("eth_getBlockByNumber", "latest", False)
    with FaultyRpc(chain) as stopped:
        two = attrs.evolve(settings, rpc_urls=(rpc.url, stopped.url))
        stopped.faults |= {
            "eth_getBlockByNumber": says(old),
            "eth_getBlockByHash": says(None),
            "eth_getTransactionReceipt": says(None),
            "eth_getLogs": says([]),
            "eth_blockNumber": says(old["number"]),
        }
        async with paid_but_unseen(two, provider, clock, chain, payer, rpc) as (gateway, task_id):
            later(chain, clock, 600)
            await asyncio.sleep(0.8)
            await held(gateway, task_id)
            rpc.heal()
            await ended_as_one_task(gateway, chain, task_id)


async def test_an_empty_answer_proves_no_unused_nonce(settings, provider, clock, chain, payer, rpc):
    async with paid_but_unseen(settings, provider, clock, chain, payer, rpc) as (gateway, task_id):
        rpc.faults["eth_call"] = knows_nothing_of_the_nonce
        later(chain, clock, 600)
        await asyncio.sleep(0.8)
        await held(gateway, task_id)
        rpc.heal()
        await ended_as_one_task(gateway, chain, task_id)
