"""Refused credentials: each gets the scheme's own problem, and nothing is taken."""

import asyncio
import json

import attrs
import pytest

from gateway.catalog.pricing import Prices
from gateway.domain import QUOTE_LIFE_S
from gateway_operator.actions.endpoints import change_price
from gateway_operator.audit_log import Actor
from gateway_operator.state import Operator
from tests.authorizations import decoded
from tests.conftest import Payer, nothing_charged, running
from tests.gateway.mpp.agent import BODY, URL, Agent, base64url, pair_hash, parsed, unpacked
from tests.held_checks import first_held

PROBLEMS = "https://paymentauth.org/problems/"
OTHER = "0x" + "c3" * 20


async def refused(agent, chain, credential, problem, **sent):
    """Check that a credential is refused with a problem, a new challenge, and nothing taken."""
    async with nothing_charged(agent.gateway, chain):
        answer = await agent.pay(credential, **sent)
    body = await answer.get_json()
    fresh = parsed(answer.headers["WWW-Authenticate"])
    assert answer.status_code == body["status"] == 402
    assert body["type"] == PROBLEMS + problem
    assert body["title"] == problem.replace("-", " ").title()
    assert body["challengeId"] == fresh["id"]
    assert body["detail"]
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert "Payment-Receipt" not in answer.headers
    assert decoded(answer.headers["PAYMENT-REQUIRED"])["accepts"]
    assert body["accepts"][0]["amount"] == str(int(unpacked(fresh["request"])["amount"]))
    return body


# -- the credential


async def test_what_is_no_credential_is_malformed(agent, chain, subtests):
    for text in ("e30", "bnVsbA", "W10", "!!!", "a", "eyJ", "\u00e9", "e30 e30", "x" * 60_000):
        with subtests.test(text[:10]):
            await refused(agent, chain, text, "malformed-credential")


CREDENTIALS = {
    "no challenge": lambda one: one.pop("challenge"),
    "no payload": lambda one: one.pop("payload"),
    "no type": lambda one: one["payload"].pop("type"),
    "a hash": lambda one: one["payload"].update(type="hash", hash="0x" + "1" * 64),
    "a transaction": lambda one: one["payload"].update(type="transaction"),
    "permit2": lambda one: one["payload"].update(type="permit2"),
    "no signature": lambda one: one["payload"].pop("signature"),
    "no nonce": lambda one: one["payload"].pop("nonce"),
    "a fraction": lambda one: one["payload"].update(value="0.02"),
    "negative": lambda one: one["payload"].update(value="-20000"),
    "too large": lambda one: one["payload"].update(value=str(2**256)),
    "an id of another type": lambda one: one["challenge"].update(id=5),
    "a source of another type": lambda one: one.update(source={}),
    "a list": lambda one: one.update(challenge=[]),
}


async def test_a_credential_with_a_part_that_cannot_be_read(agent, chain, subtests):
    for name, change in CREDENTIALS.items():
        with subtests.test(name):
            credential = agent.credential(await agent.challenge())
            change(credential)
            await refused(agent, chain, credential, "malformed-credential")


# -- the challenge


ECHOES = {
    "forged id": {"id": "A" * 43},
    "no id": {"id": ""},
    "another price": {"request": base64url({"amount": "1"})},
    "another realm": {"realm": "elsewhere.example"},
    "another method": {"method": "tempo"},
    "another intent": {"intent": "session"},
    "a later end": {"expires": "2099-01-01T00:00:00Z"},
    "no end": {"expires": ""},
    "no digest": {"digest": ""},
    "another digest": {"digest": "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"},
    "another slug": {"opaque": base64url({"slug": "another"})},
    "nothing opaque": {"opaque": ""},
    "letters of elsewhere": {"realm": "gat\u0435way.test"},
}


async def test_a_challenge_that_was_not_given(agent, chain, subtests):
    for name, echo in ECHOES.items():
        with subtests.test(name):
            credential = agent.credential(await agent.challenge(), echo=echo)
            body = await refused(agent, chain, credential, "invalid-challenge")
            assert "mpp_unknown_challenge" in body["detail"]


async def test_a_challenge_of_another_gateway(agent, chain, settings, provider, tmp_path):
    other = attrs.evolve(settings, data_dir=tmp_path / "other")
    async with running(other, provider) as gateway:
        foreign = await Agent(gateway, agent.payer).challenge()
    credential = agent.credential(foreign)
    await refused(agent, chain, credential, "invalid-challenge")


async def test_a_challenge_of_another_slug(agent, chain):
    other = await agent.challenge("/api/x402/twin")
    assert unpacked(other["opaque"])["slug"] == "twin"
    assert other["request"] == (await agent.challenge())["request"]
    body = await refused(agent, chain, agent.credential(other), "invalid-challenge")
    assert "mpp_other_request" in body["detail"]


async def test_a_challenge_of_another_body(agent, chain):
    credential = agent.credential(await agent.challenge())
    await refused(agent, chain, credential, "invalid-challenge", prompt="another boat")


async def test_a_challenge_that_has_ended(agent, chain, clock):
    challenge = await agent.challenge()
    clock.offset_s += 301
    late = agent.credential(challenge, valid_before=int(clock()) + 200)
    body = await refused(agent, chain, late, "invalid-challenge")
    assert "expired" in body["detail"]


@pytest.mark.parametrize("new", [50_000, 10_000])
async def test_a_challenge_is_good_for_its_lifetime_after_a_change_of_the_price(
    agent, gateway, chain, clock, new
):
    before, unused = await agent.challenge(), await agent.challenge()
    desk, options = (
        gateway.services.find(Operator).desk,
        {"seen": Prices(20_000), "reason": "dearer"},
    )
    actor = Actor(door="page", name="s1", address="192.0.2.1")
    await change_price(desk, actor, "picture", Prices(new), **options)
    assert (await agent.pay(agent.credential(before))).status_code == 200
    clock.offset_s += QUOTE_LIFE_S + 1
    late = agent.credential(unused, valid_before=int(clock()) + 200)
    await refused(agent, chain, late, "invalid-challenge")


# -- the authorization


SIGNED = {
    "a nonce of its own": {"nonce": lambda _: b"\x07" * 32},
    "the nonce of another challenge": {
        "nonce": lambda one: pair_hash(one | {"id": one["id"][::-1]})
    },
    "the nonce of another realm": {"nonce": lambda one: pair_hash(one | {"realm": "a"})},
    "too little": {"units": 19_999},
    "too much": {"units": 20_001},
    "another recipient": {"to": OTHER},
    "another source": {"source": "did:pkh:eip155:8453:" + OTHER},
    "another chain's source": {"source": "did:pkh:eip155:1:" + OTHER},
    "a source that is none": {"source": "did:pkh:solana:abc"},
    "not yet": {"valid_after": 2**33},
    "expired": {"valid_before": 1},
    "for a year": {"valid_before": 2**33},
}


async def test_an_authorization_of_other_terms(agent, chain, subtests):
    for name, change in SIGNED.items():
        with subtests.test(name):
            credential = agent.credential(await agent.challenge(), **change)
            await refused(agent, chain, credential, "verification-failed")


async def test_the_authorization_of_another_chain(agent, chain):
    challenge = await agent.challenge()
    credential = agent.credential(challenge)
    signed = agent.payer.authorization(nonce=pair_hash(challenge))
    signature = signed.sign(agent.payer.account.key, 1, chain.usdc)
    credential["payload"]["signature"] = "0x" + signature.hex()
    body = await refused(agent, chain, credential, "verification-failed")
    assert "invalid_exact_evm_payload_signature" in body["detail"]


async def test_somebody_elses_signature(agent, chain):
    challenge = await agent.challenge()
    credential = agent.credential(challenge)
    stranger = Agent(agent.gateway, Payer(chain)).credential(challenge)
    credential["payload"]["signature"] = stranger["payload"]["signature"]
    await refused(agent, chain, credential, "verification-failed")


async def test_an_empty_wallet(agent, chain):
    from tests.conftest import new_account

    poor = Payer(chain)
    poor.account = new_account()
    credential = Agent(agent.gateway, poor).credential(await agent.challenge())
    body = await refused(agent, chain, credential, "verification-failed")
    assert "insufficient" in body["detail"]


# -- replays


async def test_a_spent_credential_buys_nothing_else(agent, gateway, chain):
    answer = await gateway.client.get(URL)
    credential = agent.credential(parsed(answer.headers["WWW-Authenticate"]))
    assert (await agent.pay(credential)).status_code == 200
    body = await refused(agent, chain, credential, "invalid-challenge", prompt="another boat")
    assert "used before" in body["detail"]


async def test_a_strangers_copy_with_another_signature_learns_nothing(agent, chain):
    challenge = await agent.challenge()
    credential = agent.credential(challenge)
    assert (await agent.pay(credential)).status_code == 200
    changed = json.loads(json.dumps(credential))
    changed["payload"]["signature"] = "0x" + "11" * 65
    await refused(agent, chain, changed, "invalid-challenge")


async def test_the_reason_why_nothing_is_sold_comes_first(agent, gateway, chain, monkeypatch):
    from gateway.errors import ExecutionError

    async def cannot(*_):
        raise ExecutionError("Nothing can be settled now; nothing was charged.")

    monkeypatch.setattr(gateway.services.settlements, "check_can_settle", cannot)
    credential = agent.credential(await agent.challenge())
    async with nothing_charged(gateway, chain):
        answer = await agent.pay(credential)
    assert answer.status_code == 500
    assert "Payment-Receipt" not in answer.headers


async def test_while_it_is_off_its_header_is_no_payment(settings, provider, payer, agent, tmp_path):
    credential = agent.credential(await agent.challenge())
    plain = attrs.evolve(settings, plugin_values={}, data_dir=tmp_path / "plain")
    async with running(plain, provider) as alone:
        answer = await Agent(alone, payer).pay(credential)
    assert answer.status_code == 402
    assert "type" not in await answer.get_json()
    assert BODY["prompt"] not in (await answer.get_data()).decode()


async def test_a_refusal_waits_for_the_request_that_may_take_its_payment(
    gateway, agent, provider, payer, chain
):
    credential = agent.credential(await agent.challenge())
    async with first_held(provider, lambda: agent.pay(credential)) as (first, held):
        payer.transfer(100_000_000, to=OTHER)
        second = await held.refuse(lambda: agent.pay(credential))
        chain.fund(payer.account.address, eth_wei=0, usdc_units=100_000_000)
        held.may_go_on.set()
        answers = await asyncio.gather(first, second)
    assert held.refusals == ["invalid_exact_evm_insufficient_balance"]
    bodies = [await answer.get_json() for answer in answers]
    assert [answer.status_code for answer in answers] == [200, 200], bodies
    assert bodies[0]["taskId"] == bodies[1]["taskId"]
