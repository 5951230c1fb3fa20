"""The x402 extension `payment-identifier`: its id is an Idempotency-Key in the payment header."""

import pytest
from x402.extensions.payment_identifier import append_payment_identifier_to_extensions

from tests.authorizations import decoded, header_of
from tests.cases import each
from tests.conftest import WALLET, Payer, buy, nothing_charged

PRICE = 20_000
ID = "pay_7d5d747be160e280504c099d984bcfe0"
KEY = "Idempotency-Key"


async def extensions_of(gateway, identifier: str | None) -> dict:
    """Return a client's echo of the challenge; the official package adds the id."""
    extensions = decoded((await buy(gateway, None)).headers["PAYMENT-REQUIRED"])["extensions"]
    if identifier is not None:
        append_payment_identifier_to_extensions(extensions, identifier)
    return extensions


async def bought(gateway, payer, identifier, *, key: str | None = None, **fields):
    """Buy with a new signature and an identifier."""
    extensions = await extensions_of(gateway, identifier)
    header = header_of(payer.payload(version=2) | {"extensions": extensions})
    headers = {"PAYMENT-SIGNATURE": header} | ({KEY: key} if key else {})
    body = {"prompt": "a boat"} | fields
    return await gateway.client.post("/api/x402/picture", json=body, headers=headers)


async def task_of(answer) -> str:
    assert answer.status_code == 200, await answer.get_json()
    return (await answer.get_json())["taskId"]


async def test_a_fresh_signature_with_the_same_identifier_gives_the_first_task(
    gateway, payer, chain
):
    first = await bought(gateway, payer, ID)
    again = await bought(gateway, payer, ID)
    assert await task_of(again) == await task_of(first)
    assert again.headers["PAYMENT-RESPONSE"] == first.headers["PAYMENT-RESPONSE"]
    assert chain.usdc_balance(WALLET) == PRICE


async def test_the_identifier_and_the_header_are_one_key(gateway, payer, chain):
    by_header = await bought(gateway, payer, None, key=ID)
    by_both = await bought(gateway, payer, ID, key=ID)
    by_identifier = await bought(gateway, payer, ID)
    assert await task_of(by_header) == await task_of(by_both) == await task_of(by_identifier)
    assert chain.usdc_balance(WALLET) == PRICE


async def test_an_identifier_and_another_key_are_refused(gateway, payer, chain):
    async with nothing_charged(gateway, chain):
        answer = await bought(gateway, payer, ID, key="another")
    assert answer.status_code == 400
    body = await answer.get_json()
    assert body["code"] == "VALIDATION_ERROR"
    assert "differ" in body["error"]


async def test_an_identifier_belongs_to_one_request(gateway, payer, chain):
    await task_of(await bought(gateway, payer, ID))
    async with nothing_charged(gateway, chain):
        answer = await bought(gateway, payer, ID, prompt="another boat")
    assert answer.status_code == 409
    assert (await answer.get_json())["code"] == "IDEMPOTENCY_CONFLICT"


async def test_an_identifier_belongs_to_one_payer(gateway, payer, chain):
    first = await task_of(await bought(gateway, payer, ID))
    assert await task_of(await bought(gateway, Payer(chain), ID)) != first
    assert chain.usdc_balance(WALLET) == 2 * PRICE


async def test_an_echo_without_an_identifier_is_no_repeat(gateway, payer, chain):
    first = await task_of(await bought(gateway, payer, None))
    assert await task_of(await bought(gateway, payer, None)) != first
    assert chain.usdc_balance(WALLET) == 2 * PRICE


@each("wrong", ["x" * 15, "x" * 129, "é" * 20, "a b c d e f g h i j", 5, "", []])
async def test_a_wrong_identifier_is_refused_before_anything_is_charged(
    gateway, payer, chain, wrong
):
    extensions = {"payment-identifier": {"info": {"required": False, "id": wrong}}}
    header = header_of(payer.payload(version=2) | {"extensions": extensions})
    async with nothing_charged(gateway, chain):
        answer = await buy(gateway, header)
    assert answer.status_code == 400
    assert "16 to 128" in (await answer.get_json())["error"]


@pytest.mark.parametrize("echo", [None, [], "x", {"payment-identifier": {"info": []}}])
async def test_an_echo_of_another_shape_is_ignored(gateway, payer, echo):
    payload = payer.payload(version=2) | {"extensions": echo}
    await task_of(await buy(gateway, header_of(payload)))
