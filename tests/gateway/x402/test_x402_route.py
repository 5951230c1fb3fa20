"""POST /api/x402/{slug}: the challenge, the purchase, one authorization one task."""

import asyncio
import base64
import json

import attrs
import pytest

from gateway import ContentPolicy
from gateway.settings import EndpointOverride
from gateway_demo.chain import FAUCET_KEY
from tests.authorizations import decoded, header_of
from tests.conftest import WALLET, Payer, buy, nothing_charged, running
from tests.patience import until

URL = "/api/x402/picture"
TOKEN = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
SPENT = "invalid_exact_evm_nonce_already_used"


# -- the challenge


async def test_the_challenge_has_every_field_of_the_specification_and_of_x402_v1(gateway):
    answer = await buy(gateway, None)
    assert answer.status_code == 402
    body = await answer.get_json()
    assert set(body) == {"x402Version", "error", "accepts"}
    assert body["x402Version"] == 1
    assert body["error"].startswith("Payment required: 0.02 USDC on base")
    entry, for_v1 = body["accepts"]
    assert for_v1 == entry | {"asset": TOKEN}
    assert isinstance(entry.pop("description"), str)
    assert isinstance(entry.pop("outputSchema")["input"], dict)
    assert entry == {
        "scheme": "exact",
        "network": "base",
        "asset": "USDC",
        "amount": "20000",
        "recipient": WALLET,
        "maxAmountRequired": "20000",
        "payTo": WALLET,
        "resource": "http://gateway.test/api/x402/picture",
        "mimeType": "application/json",
        "maxTimeoutSeconds": 300,
        "extra": {"name": "USD Coin", "version": "2", "assetAddress": TOKEN},
    }


async def test_the_challenge_header_is_x402_version_2(gateway):
    challenge = decoded((await buy(gateway, None)).headers["PAYMENT-REQUIRED"])
    # test_listing.py tests their content.
    extensions = {"bazaar", "payment-identifier", "refund-policy"}
    assert set(challenge.pop("extensions")) == extensions
    assert challenge == {
        "x402Version": 2,
        "error": "Payment required",
        "resource": {
            "url": "http://gateway.test/api/x402/picture",
            "description": "One pixel.",
            "mimeType": "application/json",
            "serviceName": "Generation Gateway",
            "tags": ["text-to-image", "pixel-1", "scripted"],
        },
        "accepts": [
            {
                "scheme": "exact",
                "network": "eip155:8453",
                "asset": TOKEN,
                "amount": "20000",
                "payTo": WALLET,
                "maxTimeoutSeconds": 300,
                "extra": {"name": "USD Coin", "version": "2", "paymentFlow": "upfront"},
            }
        ],
    }


async def test_a_version_1_client_finds_the_token_first_and_the_specification_second(gateway):
    body = await (await buy(gateway, None, url=f"{URL}?x402Version=1")).get_json()
    assert [entry["asset"] for entry in body["accepts"]] == [TOKEN, "USDC"]
    first, second = body["accepts"]
    assert first | {"asset": "USDC"} == second
    assert body["x402Version"] == 1


async def test_challenges_are_small_open_to_browsers_and_never_cached(gateway):
    for url in (URL, f"{URL}?x402Version=1", "/api/x402/paper"):
        headers = (await gateway.client.post(url)).headers
        assert sum(len(name) + len(value) + 4 for name, value in headers.items()) < 8192
        assert headers["Cache-Control"] == "no-store"
        assert headers["Access-Control-Allow-Origin"] == "*"
        assert "PAYMENT-REQUIRED" in headers["Access-Control-Expose-Headers"]


# -- the purchase


async def test_a_purchase_starts_a_task_and_moves_exactly_the_price(gateway, payer, chain):
    answer = await buy(gateway, payer.header())
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    body = await answer.get_json()
    assert set(body) == {"success", "taskId", "statusUrl", "message"}
    assert body["success"] is True
    assert body["statusUrl"] == f"/api/task/{body['taskId']}"
    assert "statusUrl" in body["message"]
    assert chain.usdc_balance(WALLET) == 20_000
    assert (await gateway.wait(body["taskId"]))["status"] == "completed"


@pytest.mark.parametrize("name", ["X-PAYMENT", "PAYMENT-SIGNATURE"])
@pytest.mark.parametrize(
    ("version", "receipt", "network"),
    [(1, "X-PAYMENT-RESPONSE", "base"), (2, "PAYMENT-RESPONSE", "eip155:8453")],
)
async def test_either_header_takes_either_version(gateway, payer, name, version, receipt, network):
    answer = await buy(gateway, payer.header(version=version), name=name)
    assert answer.status_code == 200
    task = await gateway.wait((await answer.get_json())["taskId"])
    assert decoded(answer.headers[receipt]) == {
        "success": True,
        "transaction": task["payment"]["transaction"],
        "network": network,
        "payer": payer.account.address,
    }
    names = ("X-PAYMENT-RESPONSE", "PAYMENT-RESPONSE")
    assert [name for name in names if name in answer.headers] == [receipt]


def _numbers(payload: dict) -> dict:
    signed = payload["payload"]["authorization"]
    for name in ("value", "validAfter", "validBefore"):
        signed[name] = int(signed[name])
    if "accepted" in payload:
        payload["accepted"]["amount"] = int(payload["accepted"]["amount"])
    return payload


def _capitals(payload: dict) -> dict:
    signed = payload["payload"]["authorization"]
    for name in ("from", "to", "nonce"):
        signed[name] = "0x" + signed[name][2:].upper()
    if "accepted" in payload:
        payload["accepted"]["asset"] = "0x" + TOKEN[2:].upper()
        payload["accepted"]["payTo"] = "0x" + WALLET[2:].upper()
    return payload


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("change", [_numbers, _capitals])
async def test_numbers_and_capitals_are_understood(gateway, payer, version, change):
    header = header_of(change(payer.payload(version=version)))
    assert (await buy(gateway, header)).status_code == 200


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("padding", ["=", ""])
async def test_any_base64_is_understood(gateway, payer, encode, padding):
    text = json.dumps(payer.payload() | {"note": "???>>>~~~"}).encode()
    text += b" " * (1 - len(text) % 3)  # so that there is padding
    header = encode(text).decode()
    assert header.endswith("=")
    assert ("-" in header or "_" in header) == (encode is base64.urlsafe_b64encode)
    answer = await buy(gateway, header.rstrip("=") + padding * header.count("="))
    assert answer.status_code == 200


async def test_version_2_compares_five_fields_of_accepted_and_no_more(gateway, payer):
    payload = payer.payload(version=2)
    payload["accepted"] |= {"extra": {"name": "?"}, "maxTimeoutSeconds": 7, "new": [1]}
    payload |= {"resource": None, "extensions": {"new": {}}}
    assert (await buy(gateway, header_of(payload))).status_code == 200


# -- the same authorization again


async def test_the_same_header_gives_the_same_task_for_ever(gateway, payer, chain, clock):
    header = payer.header()
    first = await (await buy(gateway, header)).get_json()
    clock.offset_s = 86_400  # far past validBefore
    again = await buy(gateway, header)
    assert again.status_code == 200
    assert await again.get_json() == first
    assert decoded(again.headers["X-PAYMENT-RESPONSE"])["transaction"].startswith("0x")
    assert chain.usdc_balance(WALLET) == 20_000


async def test_the_same_nonce_in_capitals_is_the_same_authorization(gateway, payer, chain):
    payload = payer.payload()
    first = await (await buy(gateway, header_of(payload))).get_json()
    again = await buy(gateway, header_of(_capitals(payload)))
    assert (await again.get_json())["taskId"] == first["taskId"]
    assert chain.usdc_balance(WALLET) == 20_000


async def test_a_failed_task_is_given_again_and_not_generated_again(gateway, payer, provider):
    provider.script = [ContentPolicy("Refused.")]
    header = payer.header()
    first = await (await buy(gateway, header)).get_json()
    task = await gateway.wait(first["taskId"])
    assert task["refund"]["state"] == "refund_due"
    again = await buy(gateway, header)
    assert (again.status_code, await again.get_json()) == (200, first)
    assert len(provider.requests) == 1


@pytest.mark.parametrize("other", [{"prompt": "another boat"}, {"resolution": "2K"}])
async def test_an_authorization_pays_for_no_other_request(gateway, payer, chain, other):
    header = payer.header()
    await buy(gateway, header)
    async with nothing_charged(gateway, chain):
        answer = await buy(gateway, header, **other)
    assert answer.status_code == 402
    assert (await answer.get_json())["error"] == SPENT


async def test_an_authorization_pays_for_no_other_endpoint(gateway, payer):
    header = payer.header()
    await buy(gateway, header)
    file = {"fileBase64": "aGk=", "fileName": "a.txt"}
    answer = await gateway.client.post("/api/x402/paper", json=file, headers={"X-PAYMENT": header})
    assert answer.status_code == 402


async def test_who_knows_only_the_public_nonce_is_not_given_the_task(gateway, payer):
    """Nonce, payer and amount of a settled authorization are public on the chain."""
    payload = payer.payload()
    assert (await buy(gateway, header_of(payload))).status_code == 200
    payload["payload"]["signature"] = "0x" + "11" * 64 + "1b"
    answer = await buy(gateway, header_of(payload))
    assert answer.status_code == 402
    assert "taskId" not in await answer.get_json()


async def test_a_replay_comes_before_the_price_and_before_whether_we_can_serve(
    settings, provider, payer, chain
):
    header = payer.header()
    async with running(settings, provider) as gateway:
        first = await (await buy(gateway, header)).get_json()
    dearer = {"picture": EndpointOverride(price="0.05")}
    async with running(attrs.evolve(settings, endpoints=dearer), provider) as gateway:
        gateway.services.readiness.is_draining = True
        again = await buy(gateway, header)
        assert (again.status_code, await again.get_json()) == (200, first)
        gateway.services.readiness.is_draining = False
    assert chain.usdc_balance(WALLET) == 20_000


async def test_five_at_once_get_one_task(gateway, payer, chain, provider):
    header = payer.header()
    answers = await asyncio.gather(*(buy(gateway, header) for _ in range(5)))
    assert {answer.status_code for answer in answers} == {200}
    ids = {(await answer.get_json())["taskId"] for answer in answers}
    assert len(ids) == 1
    await gateway.wait(ids.pop())
    assert chain.usdc_balance(WALLET) == 20_000
    assert len(provider.requests) == 1


async def test_two_requests_race_for_one_authorization_and_one_wins(gateway, payer, chain):
    header = payer.header()
    answers = await asyncio.gather(*(buy(gateway, header, prompt=p) for p in ("a", "b")))
    assert sorted(answer.status_code for answer in answers) == [200, 402]
    assert chain.usdc_balance(WALLET) == 20_000


async def test_many_payers_at_once_get_a_task_each(gateway, chain):
    payers = [Payer(chain) for _ in range(6)]
    answers = await asyncio.gather(*(buy(gateway, payer.header()) for payer in payers))
    assert {answer.status_code for answer in answers} == {200}
    assert len({(await answer.get_json())["taskId"] for answer in answers}) == 6
    assert chain.usdc_balance(WALLET) == 6 * 20_000


async def test_two_payers_may_use_the_same_nonce(gateway, chain):
    for payer in (Payer(chain), Payer(chain)):
        assert (await buy(gateway, payer.header(nonce=b"\7" * 32))).status_code == 200


async def test_who_submits_the_authorization_first_buys_for_its_payer(gateway, payer, chain):
    signed = payer.authorization()
    signature = signed.sign(payer.account.key, chain.chain_id, chain.usdc)
    theirs = chain.send_transaction(FAUCET_KEY, chain.usdc, signed.call(signature))
    header = payer.header(nonce=signed.nonce, valid_before=signed.valid_before)
    answer = await buy(gateway, header)
    assert answer.status_code == 200
    assert decoded(answer.headers["X-PAYMENT-RESPONSE"])["transaction"] == theirs
    assert chain.usdc_balance(WALLET) == 20_000
    again = await buy(gateway, header)
    assert await again.get_json() == await answer.get_json()
    assert (await buy(gateway, header, prompt="another")).status_code == 402
    counts = await gateway.services.store.counts()
    assert counts["payments"] == {"settled": 1}


async def test_an_expired_repeat_waits_for_a_write_that_is_under_way(gateway, payer, chain, clock):
    """The buyer disconnected while the payment was stored, and would be charged after a 402."""
    store, payments = gateway.services.store, gateway.services.payments
    reserve, wait_for_writes = store.reserve, payments.wait_for_writes
    reserving, waiting = asyncio.Event(), asyncio.Event()

    async def slow_reserve(*arguments):
        reserving.set()
        # Not written before the repeat waits for it; otherwise the repeat gets a 402.
        await waiting.wait()
        return await reserve(*arguments)

    async def counted_wait():
        waiting.set()
        await wait_for_writes()

    store.reserve, payments.wait_for_writes = slow_reserve, counted_wait
    header = payer.header()
    request = asyncio.create_task(buy(gateway, header))
    await reserving.wait()
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
    clock.offset_s += 400
    try:
        answer = await buy(gateway, header)
    finally:
        waiting.set()
    assert answer.status_code == 200
    task = await gateway.wait((await answer.get_json())["taskId"])
    assert (task["status"], chain.usdc_balance(WALLET)) == ("completed", 20_000)


async def test_an_unknown_outcome_is_no_402_but_a_task_that_waits(gateway, payer, chain):
    gateway.services.payments.outcome_s = 0.3
    chain.set_automine(False)
    header = payer.header()
    answer = await buy(gateway, header)
    assert answer.status_code == 200
    assert decoded(answer.headers["X-PAYMENT-RESPONSE"])["success"] is True
    task_id = (await answer.get_json())["taskId"]

    async def is_sent():
        task = await (await gateway.client.get(f"/api/task/{task_id}")).get_json()
        assert task["status"] == "queued"
        return task["payment"]["state"] == "settling"

    await until(is_sent)
    chain.set_automine(True)
    assert (await gateway.wait(task_id))["status"] == "completed"
    again = await buy(gateway, header)
    assert (await again.get_json())["taskId"] == task_id
    assert chain.usdc_balance(WALLET) == 20_000
