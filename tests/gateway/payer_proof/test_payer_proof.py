"""`payerSignature` in the direct flow: only the sender decides what the money pays for."""

import asyncio
import hashlib

import pytest
from eth_account import Account

from tests.cases import each
from tests.conftest import Payer, buy, nothing_charged
from tests.gateway.payer_proof.purchases import (
    UNPROVEN,
    accepted,
    column,
    payments,
    receipt,
    refusal,
    request,
    signed,
    submit,
)


async def test_the_senders_signature_is_taken_and_noted(gateway, payer):
    body = signed(payer.account, request(payer.transfer(20_000)))
    reply = await accepted(gateway, body)
    assert reply["paidAmount"] == 0.02
    assert (await gateway.wait(reply["taskId"]))["status"] == "completed"
    assert await column(gateway, "payer_proven") == [1]


async def test_without_a_signature_nothing_is_proven(gateway, payer):
    await accepted(gateway, request(payer.transfer(20_000), payerSignature=None))
    assert await column(gateway, "payer_proven") == [0]


@each(
    "changes",
    [
        {"slug": "paper"},
        {"prompt": "another"},
        {"aspect_ratio": "16:9"},
        {"aspect_ratio": "1:1"},  # the default, but it was not sent
        {"txHash": "0x" + "ab" * 32},
        {"wallet": "0x" + "9" * 40},
        {"chain_id": 84532},
        {"version": "2"},
        {"request_hash": b"\0" * 32},
        {"request_hash": hashlib.sha256(b'{"prompt": "a boat"}').digest()},
    ],
)
async def test_a_signature_for_anything_else_is_none(gateway, payer, chain, changes):
    body = request(payer.transfer(20_000))
    async with nothing_charged(gateway, chain):
        assert await refusal(await submit(gateway, signed(payer.account, body, **changes))) == (
            UNPROVEN
        )
    await accepted(gateway, signed(payer.account, body))


async def test_the_refusal_says_what_is_wrong(gateway, payer):
    body = signed(Account.create(), request(payer.transfer(20_000)))
    reply = await (await submit(gateway, body)).get_json()
    assert "payerSignature is not by the sender" in reply["error"]


# -- attacks by an observer of the chain and of the wire


async def test_an_observer_cannot_spend_a_hash_by_a_signature_of_their_own(strict, payer, chain):
    observer = Payer(chain)
    tx_hash = payer.transfer(20_000)
    async with nothing_charged(strict, chain):
        for attempt in (
            signed(observer.account, request(tx_hash)),
            signed(observer.account, request(tx_hash, prompt="mine")),
        ):
            assert await refusal(await submit(strict, attempt)) == UNPROVEN
    await accepted(strict, signed(payer.account, request(tx_hash)))


async def test_an_observers_own_transfer_in_the_same_block_does_not_help(strict, payer, chain):
    observer = Payer(chain)
    observer.transfer(20_000)
    stolen = signed(observer.account, request(payer.transfer(20_000)))
    assert await refusal(await submit(strict, stolen)) == UNPROVEN


async def test_a_copied_signature_buys_nothing_else(strict, payer, chain):
    body = signed(payer.account, request(payer.transfer(20_000)))
    async with nothing_charged(strict, chain):
        for changes in ({"prompt": "mine"}, {"resolution": "2K"}, {"aspect_ratio": "1:1"}):
            assert await refusal(await submit(strict, body | changes)) == UNPROVEN
    await accepted(strict, body)


async def test_a_proven_transfer_pays_once(strict, payer, chain):
    body = request(payer.transfer(60_000))
    await accepted(strict, signed(payer.account, body))
    async with nothing_charged(strict, chain):
        for again in (body, body | {"prompt": "another"}):
            assert await refusal(await submit(strict, signed(payer.account, again))) == (
                400,
                "TX_ALREADY_USED",
            )


async def test_an_x402_settlement_is_not_spent_again_by_its_payers_proof(gateway, payer):
    task = await buy(gateway, payer.header())
    tx_hash = receipt(task)["transaction"]
    body = signed(payer.account, request(tx_hash))
    assert await refusal(await submit(gateway, body)) == (400, "TX_ALREADY_USED")


# -- when it is required


@pytest.mark.parametrize("changes", [{}, {"payerSignature": None}])
async def test_where_it_is_required_a_missing_one_is_said_first(strict, payer, chain, changes):
    tx_hash = payer.transfer(20_000)
    async with nothing_charged(strict, chain):
        for slug in ("picture", "nothing"):
            answer = await submit(strict, request(tx_hash, slug=slug, **changes))
            assert await refusal(answer) == (400, "VALIDATION_ERROR")
            assert (await answer.get_json())["error"].startswith("payerSignature is missing")


async def test_x402_needs_no_further_signature_where_it_is_required(strict, payer):
    assert (await buy(strict, payer.header())).status_code == 200


# -- with an Idempotency-Key


async def test_the_signature_is_not_part_of_what_a_key_repeats(gateway, payer, chain):
    body = request(payer.transfer(20_000))
    first = await accepted(gateway, signed(payer.account, body), "key")
    async with nothing_charged(gateway, chain):
        assert await accepted(gateway, body, "key") == first
        other = body | {"payerSignature": "0x" + "ab" * 65}
        assert await accepted(gateway, other, "key") == first


async def test_a_wrong_signature_does_not_use_up_hash_or_key(gateway, payer):
    body = request(payer.transfer(20_000))
    stolen = signed(Account.create(), body)
    assert await refusal(await submit(gateway, stolen, "key")) == UNPROVEN
    await accepted(gateway, signed(payer.account, body), "key")


async def test_of_fifty_at_once_under_one_key_there_is_one_task(gateway, payer):
    body = signed(payer.account, request(payer.transfer(20_000)))
    replies = await asyncio.gather(*(accepted(gateway, body, "key") for _ in range(50)))
    assert len({one["taskId"] for one in replies}) == 1
    assert await payments(gateway) == {"settled": 1}


async def test_of_payer_and_thieves_at_once_the_payer_is_served(strict, payer, chain):
    body = request(payer.transfer(20_000))
    thieves = [signed(Account.create(), body | {"prompt": f"{n}"}) for n in range(20)]
    attempts = [*thieves[:10], signed(payer.account, body), *thieves[10:]]
    answers = await asyncio.gather(*(submit(strict, attempt) for attempt in attempts))
    statuses = [answer.status_code for answer in answers]
    assert statuses == [400] * 10 + [200] + [400] * 10


# -- how clients find out


async def _published(gateway) -> tuple[dict, str]:
    answer = await gateway.client.get("/.well-known/agent-manifest.json")
    manifest = await answer.get_json()
    text = (await (await gateway.client.get("/llms.txt")).get_data()).decode()
    (direct,) = (one for one in manifest["authentication"] if one["type"] == "DirectUSDC")
    return direct, text


async def test_manifest_and_llms_txt_say_whether_it_is_required(gateway, strict):
    optional, required = await _published(gateway), await _published(strict)
    assert "may sign the request: `payerSignature`" in optional[0]["description"]
    assert "must sign the request: `payerSignature`" in required[0]["description"]
    for direct, text in (optional, required):
        assert direct["requiredFields"] == ["slug", "prompt", "txHash"]
        assert "PayerProof(bytes32 txHash,string slug,bytes32 requestHash)" in text
    assert "Optional: `payerSignature`" in optional[1]
    assert "Required here: `payerSignature`" in required[1]
