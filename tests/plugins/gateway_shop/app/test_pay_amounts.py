"""Amounts of one buyer alone: no other buys with a transfer that was paid by a QR code."""

import asyncio
import secrets

import attrs
import pytest

from tests.conftest import Payer, nothing_charged, running
from tests.gateway.settlement.faulty_rpc import FaultyRpc, silent

PRICE = 20_000
URL = "/api/proxy-generate"


def new_key() -> str:
    return secrets.token_hex(16)


async def ask_amount(gateway, key: str | None, units: object = PRICE, slug: str = "picture"):
    headers = {} if key is None else {"Idempotency-Key": key}
    return await gateway.client.post(f"/pay/amount?slug={slug}&units={units}", headers=headers)


async def reserved(gateway, key: str) -> int:
    answer = await ask_amount(gateway, key)
    body = await answer.get_json()
    assert answer.status_code == 200, body
    return int(body["units"])


async def found(gateway, key: str) -> str | None:
    answer = await gateway.client.get("/pay/transfer", headers={"Idempotency-Key": key})
    assert answer.status_code == 200
    return (await answer.get_json())["transaction"]


async def claim(gateway, tx_hash: str, key: str | None = None, prompt: str = "a boat", **more):
    body = {"slug": "picture", "prompt": prompt, "txHash": tx_hash} | more
    headers = {} if key is None else {"Idempotency-Key": key}
    answer = await gateway.client.post(URL, json=body, headers=headers)
    return answer.status_code, await answer.get_json()


async def test_an_amount_is_a_little_above_the_price_and_nobody_elses_price(gateway):
    amounts = [await reserved(gateway, new_key()) for _ in range(6)]
    assert len(set(amounts)) == 6
    assert all(PRICE < amount <= PRICE + 9_999 and amount % 100 for amount in amounts)


async def test_the_same_key_gets_the_same_amount(gateway):
    key = new_key()
    assert await reserved(gateway, key) == await reserved(gateway, key)


async def test_the_page_finds_its_transfer_and_buys_with_it(gateway, payer):
    key = new_key()
    units = await reserved(gateway, key)
    assert await found(gateway, key) is None
    Payer(gateway.chain).transfer(PRICE)
    tx_hash = payer.transfer(units)
    while await found(gateway, key) is None:  # noqa: ASYNC110 - the chain tells nobody
        await asyncio.sleep(0.1)
    assert await found(gateway, key) == tx_hash
    status, body = await claim(gateway, tx_hash, key)
    assert status == 200, body
    assert body["paidAmount"] == units / 10**6
    task = await gateway.wait(body["taskId"])
    assert task["status"] == "completed"
    assert await claim(gateway, tx_hash, key) == (200, body)


@pytest.mark.parametrize("key", [None, "another-buyers-secret-key"])
async def test_who_only_saw_the_transfer_buys_nothing_with_it(gateway, payer, key):
    own = new_key()
    tx_hash = payer.transfer(await reserved(gateway, own))
    async with nothing_charged(gateway, gateway.chain):
        status, body = await claim(gateway, tx_hash, key, prompt="a thief")
        assert (status, body["code"]) == (400, "INVALID_PAYMENT")
        assert "reserved for another purchase" in body["error"]
    assert (await claim(gateway, tx_hash, own))[0] == 200


async def test_of_a_thief_and_the_buyer_at_once_the_buyer_gets_the_task(gateway, payer):
    own = new_key()
    tx_hash = payer.transfer(await reserved(gateway, own))
    outcomes = await asyncio.gather(
        claim(gateway, tx_hash, new_key(), prompt="a thief"),
        claim(gateway, tx_hash, own),
        claim(gateway, tx_hash, None, prompt="a thief"),
    )
    assert [status for status, _ in outcomes] == [400, 200, 400]


async def test_a_reservation_survives_a_restart(settings, provider, chain):
    key = new_key()
    async with running(settings, provider) as gateway:
        units = await reserved(gateway, key)
    async with running(settings, provider) as gateway:
        await gateway.services.payments.cutoff_block()
        chain.mine()
        tx_hash = Payer(chain).transfer(units)
        assert (await claim(gateway, tx_hash))[0] == 400
        assert (await claim(gateway, tx_hash, key))[0] == 200


async def test_other_transfers_buy_as_before(gateway, payer):
    await reserved(gateway, new_key())
    for units in (PRICE, 2 * PRICE, 1_000_000):
        assert (await claim(gateway, payer.transfer(units)))[0] == 200


async def test_the_difference_is_not_called_paid_too_much(gateway, payer):
    key = new_key()
    units = await reserved(gateway, key)
    _, body = await claim(gateway, payer.transfer(units), key)
    task = await gateway.services.store.task(body["taskId"])
    assert (task.payment.price_units, task.payment.paid_units) == (units, units)


async def test_an_amount_below_the_price_of_the_request_pays_nothing(gateway, payer):
    key = new_key()
    await reserved(gateway, key)
    status, body = await claim(gateway, payer.transfer(PRICE - 1), key)
    assert (status, body["code"]) == (400, "INSUFFICIENT_PAYMENT")


@pytest.mark.parametrize(
    ("key", "units", "slug", "status"),
    [
        (None, PRICE, "picture", 400),
        ("short", PRICE, "picture", 400),
        ("k" * 22, "", "picture", 400),
        ("k" * 22, "-1", "picture", 400),
        ("k" * 22, "1e5", "picture", 400),
        ("k" * 22, "9" * 30, "picture", 400),
        ("k" * 22, PRICE - 1, "picture", 400),
        ("k" * 22, 10**12, "picture", 400),
        ("k" * 22, PRICE, "nothing", 404),
    ],
)
async def test_a_wrong_question_reserves_nothing(gateway, key, units, slug, status):
    assert (await ask_amount(gateway, key, units, slug)).status_code == status


async def test_a_key_without_an_amount_finds_nothing(gateway):
    answer = await gateway.client.get("/pay/transfer", headers={"Idempotency-Key": new_key()})
    assert answer.status_code == 404


async def test_one_address_reserves_few_amounts(gateway):
    answers = [await ask_amount(gateway, new_key()) for _ in range(7)]
    assert [answer.status_code for answer in answers] == [200] * 6 + [429]


async def test_while_nothing_is_sold_no_transfer_is_asked_for(gateway):
    gateway.services.readiness.is_draining = True
    answer = await ask_amount(gateway, new_key())
    assert answer.status_code in (500, 503)


# Every read is tried again for some seconds.
@pytest.mark.full
async def test_while_the_chain_does_not_answer_no_transfer_is_asked_for(settings, provider, chain):
    asked_before, asked_late = new_key(), new_key()
    with FaultyRpc(chain) as rpc:
        async with running(attrs.evolve(settings, rpc_urls=(rpc.url,)), provider) as gateway:
            assert await reserved(gateway, asked_before)
            rpc.faults["*"] = silent
            assert await found(gateway, asked_before) is None
            assert (await ask_amount(gateway, asked_late)).status_code == 500
            headers = {"Idempotency-Key": asked_late}
            answer = await gateway.client.get("/pay/transfer", headers=headers)
            assert answer.status_code == 404


async def test_where_the_senders_signature_is_needed_there_are_no_amounts(settings, provider):
    strict = attrs.evolve(settings, require_payer_signature=True)
    async with running(strict, provider) as gateway:
        assert (await ask_amount(gateway, new_key())).status_code == 404
