"""Concurrent Idempotency-Keys of x402 payers, also with smart accounts."""

import asyncio

from eth_account import Account

from tests.conftest import WALLET, nothing_charged
from tests.gateway.payer_proof.purchases import (
    SmartPayer,
    bought,
    buy,
    payments,
    refusal,
)

SIGNATURE = "invalid_exact_evm_payload_signature"


# -- smart accounts


async def test_a_smart_account_has_keys_as_well(gateway, chain):
    payer = SmartPayer(chain)
    first = await bought(gateway, payer.header(), "key")
    async with nothing_charged(gateway, chain):
        assert await bought(gateway, payer.header(), "key") == first
        forged = await buy(gateway, payer.header(by=Account.create()), "key")
        other = await buy(gateway, payer.header(), "key", prompt="another")
    assert await refusal(forged) == (402, SIGNATURE)
    assert await refusal(other) == (409, "IDEMPOTENCY_CONFLICT")


async def test_a_smart_account_that_cannot_be_asked_is_told_nothing(gateway, chain, rpc):
    payer = SmartPayer(chain)
    first = await bought(gateway, payer.header(), "key")
    rpc.broken.add("eth_call")
    assert await refusal(await buy(gateway, payer.header(), "key")) == (500, "INTERNAL_ERROR")
    rpc.broken.clear()
    assert await bought(gateway, payer.header(), "key") == first


# -- races


async def test_of_fifty_signatures_at_once_under_one_key_one_is_used(
    gateway, payer, chain, provider
):
    headers = [payer.header() for _ in range(50)]
    tasks = await asyncio.gather(*(bought(gateway, header, "key") for header in headers))
    assert len(set(tasks)) == 1
    await gateway.wait(tasks[0])
    assert chain.usdc_balance(WALLET) == 20_000
    assert await payments(gateway) == {"settled": 1}
    assert len(await gateway.services.store._rows("SELECT key FROM claims")) == 1
    assert len(provider.requests) == 1


async def test_of_two_requests_at_once_under_one_key_one_is_sold(gateway, payer, chain):
    answers = await asyncio.gather(
        *(buy(gateway, payer.header(), "key", prompt=f"boat {number % 2}") for number in range(20))
    )
    bodies = [await answer.get_json() for answer in answers]
    assert len({body["taskId"] for body in bodies if "taskId" in body}) == 1
    assert {answer.status_code for answer in answers} == {200, 409}
    assert chain.usdc_balance(WALLET) == 20_000


async def test_one_authorization_at_once_under_many_keys_is_one_purchase(gateway, payer, chain):
    header = payer.header()
    tasks = await asyncio.gather(*(bought(gateway, header, f"key {n}") for n in range(10)))
    assert len(set(tasks)) == 1
    assert chain.usdc_balance(WALLET) == 20_000
