"""Idempotency-Key in the x402 flow: a new signature for a lost response is not charged again."""

import attrs
import pytest
from eth_account import Account

from tests.authorizations import header_of, payload_of
from tests.conftest import WALLET, Payer, nothing_charged, running
from tests.gateway.payer_proof.purchases import (
    bought,
    buy,
    column,
    payments,
    receipt,
    refusal,
    request,
    submit,
)

SIGNATURE = "invalid_exact_evm_payload_signature"


async def test_a_fresh_authorization_with_the_same_key_gives_the_first_task(
    gateway, payer, chain, provider
):
    first = await buy(gateway, payer.header(), "key")
    answer = await first.get_json()
    await gateway.wait(answer["taskId"])
    async with nothing_charged(gateway, chain):
        again = await buy(gateway, payer.header(), "key")
    assert (again.status_code, await again.get_json()) == (200, answer)
    assert receipt(again) == receipt(first)
    assert receipt(again)["transaction"].startswith("0x")
    assert len(provider.requests) == 1


async def test_the_receipt_speaks_the_version_of_the_fresh_authorization(gateway, payer):
    first = await buy(gateway, payer.header(), "key")
    again = await buy(gateway, payer.header(version=2), "key")
    assert "X-PAYMENT-RESPONSE" not in again.headers
    assert again.headers["PAYMENT-RESPONSE"]
    assert await again.get_json() == await first.get_json()


async def test_an_authorization_that_was_not_used_stays_good_for_something_else(
    gateway, payer, chain
):
    first = await bought(gateway, payer.header(), "key")
    unused = payer.header()
    assert await bought(gateway, unused, "key") == first
    second = await bought(gateway, unused, "another", prompt="a second boat")
    assert second != first
    assert chain.usdc_balance(WALLET) == 40_000


@pytest.mark.parametrize(
    "changes", [{"prompt": "another"}, {"resolution": "2K"}, {"aspect_ratio": "16:9"}]
)
async def test_the_same_key_with_another_request_is_a_conflict(gateway, payer, chain, changes):
    await bought(gateway, payer.header(), "key")
    async with nothing_charged(gateway, chain):
        answer = await buy(gateway, payer.header(), "key", **changes)
    assert await refusal(answer) == (409, "IDEMPOTENCY_CONFLICT")


async def test_the_same_key_at_another_endpoint_is_a_conflict(gateway, payer, chain):
    await bought(gateway, payer.header(), "key")
    file = {"fileBase64": "aGVsbG8=", "fileName": "a.txt"}
    async with nothing_charged(gateway, chain):
        answer = await buy(gateway, payer.header(10_000), "key", slug="paper", **file)
    assert await refusal(answer) == (409, "IDEMPOTENCY_CONFLICT")


async def test_what_an_endpoint_fills_in_is_the_same_request(gateway, payer):
    first = await bought(gateway, payer.header(), "key")
    assert await bought(gateway, payer.header(), "key", aspect_ratio="1:1") == first


async def test_a_weak_key_is_still_everybodys_own(gateway, payer, chain):
    other = Payer(chain)
    first = await bought(gateway, payer.header(), "1")
    second = await bought(gateway, other.header(), "1")
    assert first != second
    assert await bought(gateway, other.header(), "1") == second
    assert chain.usdc_balance(WALLET) == 40_000


@pytest.mark.parametrize("prompt", ["a boat", "another"])
async def test_nobody_else_learns_anything_by_the_key(gateway, payer, chain, prompt):
    """Neither the task, nor even that the key is known."""
    await bought(gateway, payer.header(), "1")
    forged = payer.authorization()
    signature = forged.sign(Account.create().key, chain.chain_id, chain.usdc)
    header = header_of(payload_of(forged, signature))
    answers = []
    async with nothing_charged(gateway, chain):
        for key in ("1", "unknown"):
            answer = await buy(gateway, header, key, prompt=prompt)
            answers.append((answer.status_code, await answer.get_json()))
    assert answers[0] == answers[1]
    assert (answers[0][0], answers[0][1]["error"]) == (402, SIGNATURE)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"to": "0x" + "9" * 40}, "invalid_exact_evm_payload_recipient_mismatch"),
        ({"units": 19_999}, "invalid_exact_evm_payload_authorization_value_mismatch"),
        ({"valid_before": 1}, "invalid_exact_evm_payload_authorization_valid_before"),
        ({"valid_before": 2**40}, "invalid_exact_evm_payload_authorization_valid_before"),
        ({"valid_after": 2**40}, "invalid_exact_evm_payload_authorization_valid_after"),
    ],
)
async def test_what_was_signed_for_somebody_else_or_another_time_opens_nothing(
    gateway, payer, chain, changes, reason
):
    await bought(gateway, payer.header(), "key")
    async with nothing_charged(gateway, chain):
        answer = await buy(gateway, payer.header(**changes), "key")
    assert await refusal(answer) == (402, reason)


async def test_a_payer_who_spent_everything_gets_the_first_task(gateway, payer, chain):
    first = await bought(gateway, payer.header(), "key")
    payer.transfer(chain.usdc_balance(payer.account.address), to="0x" + "9" * 40)
    assert await bought(gateway, payer.header(), "key") == first
    assert await refusal(await buy(gateway, payer.header(), "new")) == (
        402,
        "invalid_exact_evm_insufficient_balance",
    )


async def test_a_lost_answer_is_given_where_nothing_can_be_sold(gateway, payer, chain):
    first = await bought(gateway, payer.header(), "key")
    gateway.services.readiness.is_draining = True
    chain.stop()
    assert await bought(gateway, payer.header(), "key") == first
    assert await refusal(await buy(gateway, payer.header(), "key", prompt="another")) == (
        409,
        "IDEMPOTENCY_CONFLICT",
    )
    assert await refusal(await buy(gateway, payer.header(), "new")) == (503, "EXECUTION_ERROR")


@pytest.mark.parametrize("key", [None, "another"])
async def test_the_same_authorization_needs_no_key(gateway, payer, chain, key):
    header = payer.header()
    first = await bought(gateway, header, "key")
    async with nothing_charged(gateway, chain):
        assert await bought(gateway, header, key) == first
        answer = await buy(gateway, header, key, prompt="another")
    assert answer.status_code == 402


async def test_a_key_given_with_a_repetition_is_not_kept(gateway, payer, chain):
    header = payer.header()
    first = await bought(gateway, header)
    assert await bought(gateway, header, "late") == first
    assert await bought(gateway, payer.header(), "late") != first
    assert chain.usdc_balance(WALLET) == 40_000


async def test_without_a_key_a_fresh_authorization_pays_again(gateway, payer, chain):
    assert await bought(gateway, payer.header()) != await bought(gateway, payer.header())
    assert chain.usdc_balance(WALLET) == 40_000


async def test_a_refused_payment_does_not_use_up_its_key(gateway, payer):
    refused = await buy(gateway, payer.header(19_999), "key")
    assert refused.status_code == 402
    assert await bought(gateway, payer.header(), "key", prompt="another")


@pytest.mark.parametrize("key", ["", "k" * 256])
@pytest.mark.parametrize("pays", [True, False])
async def test_a_key_has_1_to_255_characters(gateway, payer, chain, key, pays):
    headers = {"Idempotency-Key": key} | ({"X-PAYMENT": payer.header()} if pays else {})
    async with nothing_charged(gateway, chain):
        answer = await gateway.client.post(
            "/api/x402/picture", json={"prompt": "a"}, headers=headers
        )
    assert await refusal(answer) == (400, "VALIDATION_ERROR")


async def test_a_price_probe_with_a_key_sees_the_price(gateway):
    answer = await gateway.client.post("/api/x402/picture", headers={"Idempotency-Key": "key"})
    assert answer.status_code == 402


async def test_keys_of_the_two_flows_never_meet(gateway, payer, chain):
    """Even if another account's address is written into a key of the direct flow."""
    address = payer.account.address.lower()
    other = Payer(chain)
    for key in ("1", f"{address}1", f"{address}ÿ1"):
        answer = await submit(gateway, request(other.transfer(20_000)), key)
        assert answer.status_code == 200
    by_header = await bought(gateway, payer.header(), "1")
    assert await bought(gateway, payer.header(), "1") == by_header
    assert await payments(gateway) == {"settled": 4}


async def test_keys_are_stored_hashed_and_an_x402_payer_counts_as_proven(gateway, payer):
    await bought(gateway, payer.header(), "a key nobody shall read")
    await bought(gateway, payer.header())
    hashes = await column(gateway, "idempotency_hash")
    assert len(hashes[0]) == 64
    assert hashes[1] is None
    assert await column(gateway, "payer_proven") == [1, 1]


async def test_a_key_lasts_over_a_restart(settings, provider, payer, chain):
    async with running(settings, provider) as gateway:
        first = await bought(gateway, payer.header(), "key")
    async with running(settings, provider) as gateway, nothing_charged(gateway, chain):
        assert await bought(gateway, payer.header(), "key") == first


async def test_a_failed_generation_keeps_its_key(gateway, payer, provider, chain):
    from gateway import ContentPolicy

    provider.script = [ContentPolicy("no boats")]
    first = await bought(gateway, payer.header(), "key")
    assert (await gateway.wait(first))["status"] == "failed"
    async with nothing_charged(gateway, chain):
        assert await bought(gateway, payer.header(), "key") == first


async def test_a_price_that_changed_does_not_hide_the_first_task(settings, provider, payer):
    from gateway.settings import EndpointOverride

    async with running(settings, provider) as gateway:
        first = await bought(gateway, payer.header(), "key")
    dearer = attrs.evolve(settings, endpoints={"picture": EndpointOverride(price="0.03")})
    async with running(dearer, provider) as gateway:
        assert await bought(gateway, payer.header(30_000), "key") == first
