"""Purchases by the Machine Payments Protocol, method `evm`, credential type `authorization`."""

import base64
import hashlib
import json
import re

import attrs
import pytest

from gateway.domain.eip3009 import checksum_address
from tests.authorizations import decoded, header_of
from tests.conftest import WALLET, nothing_charged, running
from tests.gateway.mpp.agent import (
    BODY,
    URL,
    Agent,
    base64url,
    packed_hash,
    pair_hash,
    parsed,
    unpacked,
)

# -- the 402


async def test_the_402_has_a_challenge_as_the_drafts_say(gateway, agent, chain, clock):
    answer = await gateway.client.post(URL, json=BODY)
    challenge = parsed(answer.headers["WWW-Authenticate"])
    body = json.dumps(BODY).encode()
    digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
    assert challenge["realm"] == "gateway.test"
    assert (challenge["method"], challenge["intent"]) == ("evm", "charge")
    assert unpacked(challenge["request"]) == {
        "amount": "20000",
        "currency": checksum_address(chain.usdc),
        "recipient": checksum_address(WALLET),
        "methodDetails": {
            "chainId": chain.chain_id,
            "credentialTypes": ["authorization"],
            "decimals": 6,
        },
    }
    assert challenge["digest"] == f"sha-256=:{digest}:"
    assert unpacked(challenge["opaque"])["slug"] == "picture"
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", challenge["id"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", challenge["expires"])
    assert answer.headers["Cache-Control"] == "no-store"


async def test_the_second_challenge_costs_some_600_bytes(gateway):
    answer = await gateway.client.post(URL, json=BODY)
    assert len(answer.headers["WWW-Authenticate"]) < 700
    assert len(answer.headers["PAYMENT-REQUIRED"]) < 3_584


async def test_x402s_402_is_the_same_with_and_without(gateway, settings, provider, tmp_path):
    plain = attrs.evolve(settings, plugin_values={}, data_dir=tmp_path / "plain")
    both = await gateway.client.post(URL, json=BODY)
    async with running(plain, provider) as alone:
        single = await alone.client.post(URL, json=BODY)
    assert await single.get_data() == await both.get_data()
    assert single.headers["PAYMENT-REQUIRED"] == both.headers["PAYMENT-REQUIRED"]
    assert "WWW-Authenticate" not in single.headers
    assert "Payment-Receipt" not in single.headers["Access-Control-Expose-Headers"]


async def test_a_large_body_is_hashed_once_and_not_by_the_loop(gateway, payer, monkeypatch):
    hashed, run = [], gateway.services.intake.bodies.run

    async def noted(function, *arguments):
        hashed.append(function.__name__)
        return await run(function, *arguments)

    monkeypatch.setattr(gateway.services.intake.bodies, "run", noted)
    file = base64.b64encode(b"a line of text\n" * 50_000).decode()
    body = {"fileBase64": file, "fileName": "paper.txt"}
    answer = await gateway.client.post("/api/x402/paper", json=body)
    digest = hashlib.sha256(json.dumps(body).encode()).digest()
    sent_digest = parsed(answer.headers["WWW-Authenticate"])["digest"]
    assert sent_digest == f"sha-256=:{base64.b64encode(digest).decode()}:"
    assert hashed.count("_digest") == 1


async def test_a_challenge_without_a_body_is_for_every_body_of_that_price(gateway, agent):
    for ask in (gateway.client.get, gateway.client.post):
        answer = await ask(URL)
        challenge = parsed(answer.headers["WWW-Authenticate"])
        assert "digest" not in challenge
        assert (await agent.pay(agent.credential(challenge))).status_code == 200


async def test_pages_of_other_sites_may_send_and_read_the_headers(gateway):
    asked = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    before = (await gateway.client.options(URL, headers=asked)).headers
    assert "Authorization" in ", ".join(before.getlist("Access-Control-Allow-Headers"))
    headers = (await gateway.client.post(URL, json=BODY)).headers
    exposed = ", ".join(headers.getlist("Access-Control-Expose-Headers"))
    assert {"WWW-Authenticate", "Payment-Receipt", "PAYMENT-REQUIRED"} <= set(exposed.split(", "))


# -- a purchase


@pytest.mark.parametrize("nonce", [pair_hash, packed_hash])
async def test_a_credential_buys_and_the_answer_has_a_receipt(gateway, agent, chain, nonce):
    before = chain.usdc_balance(WALLET)
    challenge = await agent.challenge()
    answer = await agent.pay(agent.credential(challenge, nonce=nonce))
    assert answer.status_code == 200
    task = await gateway.wait((await answer.get_json())["taskId"])
    receipt = unpacked(answer.headers["Payment-Receipt"])
    assert task["status"] == "completed"
    assert receipt == {
        "challengeId": challenge["id"],
        "chainId": chain.chain_id,
        "method": "evm",
        "reference": task["payment"]["transaction"],
        "status": "success",
        "timestamp": receipt["timestamp"],
    }
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", receipt["timestamp"])
    assert answer.headers["Cache-Control"] == "private, no-store"
    assert "PAYMENT-RESPONSE" not in answer.headers
    assert chain.usdc_balance(WALLET) == before + 20_000


async def test_one_payer_buys_the_same_thing_twice(agent):
    first, second = await agent.buy(), await agent.buy()
    assert first.status_code == second.status_code == 200
    assert (await first.get_json())["taskId"] != (await second.get_json())["taskId"]


async def test_the_scheme_may_be_written_in_small_letters(gateway, agent):
    text = base64url(agent.credential(await agent.challenge()))
    headers = {"Authorization": f"payment   {text}"}
    assert (await gateway.client.post(URL, json=BODY, headers=headers)).status_code == 200


@pytest.mark.parametrize("source", ["", "did:key:z6Mk", None])
async def test_a_source_that_names_no_account_is_no_matter(agent, source):
    credential = agent.credential(await agent.challenge(), source=source)
    if source == "":
        del credential["source"]
    assert (await agent.pay(credential)).status_code == 200


async def test_openapi_tells_the_offer(gateway, chain):
    paths = (await (await gateway.client.get("/openapi.json")).get_json())["paths"]
    info = paths["/api/x402/picture"]["post"]["x-payment-info"]
    named = {"intent": "charge", "method": "evm", "currency": checksum_address(chain.usdc)}
    assert info["protocols"] == [{"x402": {}}, {"mpp": named}]
    assert info["offers"] == [named | {"amount": "20000"}]


async def test_llms_txt_tells_of_it_only_where_it_is_on(gateway, settings, provider, tmp_path):
    plain = attrs.evolve(settings, plugin_values={}, data_dir=tmp_path / "plain")
    page = await (await gateway.client.get("/llms.txt")).get_data(as_text=True)
    async with running(plain, provider) as alone:
        single = await (await alone.client.get("/llms.txt")).get_data(as_text=True)
    assert "Authorization: Payment" in page
    assert "Authorization: Payment" not in single


# -- the same credential again


async def test_a_lost_answer_is_given_again(gateway, agent, chain, clock):
    credential = agent.credential(await agent.challenge())
    first = await agent.pay(credential)
    async with nothing_charged(gateway, chain):
        clock.offset_s += 3600
        again = await agent.pay(credential)
    assert again.status_code == 200
    assert (await again.get_json())["taskId"] == (await first.get_json())["taskId"]
    receipt = unpacked(again.headers["Payment-Receipt"])
    assert receipt["reference"] == unpacked(first.headers["Payment-Receipt"])["reference"]


async def test_challenge_and_purchase_outlive_a_restart(settings, provider, payer, chain):
    async with running(settings, provider) as gateway:
        agent = Agent(gateway, payer)
        spent, unspent = [agent.credential(await agent.challenge()) for _ in range(2)]
        first = await (await agent.pay(spent)).get_json()
    async with running(settings, provider) as gateway:
        agent = Agent(gateway, payer)
        async with nothing_charged(gateway, chain):
            again = await (await agent.pay(spent)).get_json()
        other = await (await agent.pay(unspent)).get_json()
    assert again["taskId"] == first["taskId"]
    assert other["taskId"] != first["taskId"]


async def test_an_unknown_outcome_has_no_receipt_until_it_is_known(gateway, agent, chain):
    gateway.services.payments.outcome_s = 0.3
    chain.set_automine(False)
    credential = agent.credential(await agent.challenge())
    held = await agent.pay(credential)
    assert held.status_code == 200
    assert "Payment-Receipt" not in held.headers
    chain.set_automine(True)
    task_id = (await held.get_json())["taskId"]
    assert (await gateway.wait(task_id))["status"] == "completed"
    known = await agent.pay(credential)
    assert (await known.get_json())["taskId"] == task_id
    assert unpacked(known.headers["Payment-Receipt"])["status"] == "success"


async def test_an_idempotency_key_gives_the_task_of_another_credential(gateway, agent, chain):
    key = {"Idempotency-Key": "mine"}
    first = await agent.pay(agent.credential(await agent.challenge()), headers=key)
    second = agent.credential(await agent.challenge())
    async with nothing_charged(gateway, chain):
        again = await agent.pay(second, headers=key)
    assert (await again.get_json())["taskId"] == (await first.get_json())["taskId"]


# -- one authorization by two protocols


def as_x402(credential, version):
    """Return an X-PAYMENT header with the authorization of a credential."""
    paid = credential["payload"]
    names = ("from", "to", "value", "validAfter", "validBefore", "nonce")
    payload = {
        "signature": paid["signature"],
        "authorization": {name: paid[name] for name in names},
    }
    terms = {"x402Version": 1, "scheme": "exact", "network": "base", "payload": payload}
    return {"X-PAYMENT": header_of(terms)}


@pytest.mark.parametrize("first", ["mpp", "x402"])
async def test_one_authorization_by_both_protocols_is_one_payment(gateway, agent, chain, first):
    credential = agent.credential(await agent.challenge())
    ways = {
        "mpp": lambda: agent.pay(credential),
        "x402": lambda: gateway.client.post(URL, json=BODY, headers=as_x402(credential, 1)),
    }
    bought = await ways.pop(first)()
    (second,) = ways.values()
    async with nothing_charged(gateway, chain):
        again = await second()
    assert bought.status_code == again.status_code == 200
    assert (await again.get_json())["taskId"] == (await bought.get_json())["taskId"]


async def test_both_in_one_request_are_refused(gateway, agent, chain):
    credential = agent.credential(await agent.challenge())
    async with nothing_charged(gateway, chain):
        answer = await agent.pay(credential, headers=as_x402(credential, 1))
    assert answer.status_code == 400
    assert "two payments" in (await answer.get_json())["error"]


async def test_two_at_once_are_one_payment(gateway, agent, chain):
    import asyncio

    credential = agent.credential(await agent.challenge())
    before = chain.usdc_balance(WALLET)
    answers = await asyncio.gather(*(agent.pay(credential) for _ in range(6)))
    assert {(await one.get_json())["taskId"] for one in answers} == {
        (await answers[0].get_json())["taskId"]
    }
    assert chain.usdc_balance(WALLET) == before + 20_000


async def test_mcp_and_bazaars_know_x402_only(gateway):
    listed = await (await gateway.client.get("/.well-known/x402.json")).get_json()
    assert listed["items"][0]["accepts"][0]["scheme"] == "exact"
    quote = gateway.services.quote(gateway.services.catalog["picture"].endpoint)
    first = gateway.services.payments.methods.first
    assert decoded(first.challenge(quote, None, 2).headers["PAYMENT-REQUIRED"])["x402Version"] == 2
