"""A refusal states that nothing was charged only if no other request can take the payment."""

import asyncio
import time

import attrs
import pytest

from gateway.chain.authorization_checks import SPENT
from gateway.domain import GenerationRequest
from gateway.payments.claimants import Claimant
from gateway.payments.sent import SentRequest
from tests.authorizations import header_of
from tests.conftest import WALLET, Payer, buy, running
from tests.gateway.direct.test_direct_route import claim
from tests.held_checks import first_held
from tests.patience import until

ELSEWHERE = "0x" + "99" * 20
EVERYTHING = 100_000_000


def same_again(payer: Payer) -> list[dict]:
    """Return one authorization in both versions of the header."""
    signed = payer.authorization()
    shown = {"nonce": signed.nonce, "valid_before": signed.valid_before}
    return [
        {"header": payer.header(**shown)},
        {"header": payer.header(version=2, **shown), "name": "PAYMENT-SIGNATURE"},
    ]


def identified(payer: Payer, number: int) -> str:
    extensions = {"payment-identifier": {"info": {"id": "purchase-of-a-boat"}}}
    nonce = bytes([number]) * 32
    return header_of(payer.payload(version=2, nonce=nonce) | {"extensions": extensions})


def same_key(payer: Payer) -> list[dict]:
    """Return two authorizations with one key."""
    return [{"header": identified(payer, n), "name": "PAYMENT-SIGNATURE"} for n in (1, 2)]


@pytest.mark.parametrize("make", [same_again, same_key])
async def test_a_refusal_waits_for_the_request_that_may_take_its_payment(
    gateway, provider, payer, chain, make
):
    first, second = make(payer)
    async with first_held(provider, lambda: buy(gateway, **first)) as (bought, held):
        payer.transfer(EVERYTHING, to=ELSEWHERE)
        refused = await held.refuse(lambda: buy(gateway, **second))
        chain.fund(payer.account.address, eth_wei=0, usdc_units=EVERYTHING)
        held.may_go_on.set()
        answers = await asyncio.gather(bought, refused)
    assert held.refusals == ["invalid_exact_evm_insufficient_balance"]
    bodies = [await answer.get_json() for answer in answers]
    assert [answer.status_code for answer in answers] == [200, 200], bodies
    assert bodies[0]["taskId"] == bodies[1]["taskId"]
    assert chain.usdc_balance(WALLET) == 20_000


async def test_a_refusal_whose_key_is_on_record_waits_for_its_own_payment(
    gateway, provider, payer, chain, clock
):
    key = {"name": "PAYMENT-SIGNATURE"}
    assert (await buy(gateway, identified(payer, 1), **key)).status_code == 200
    keyless = payer.header(nonce=b"\2" * 32)
    async with first_held(provider, lambda: buy(gateway, keyless)) as (bought, held):
        clock.offset_s += 400
        refused = asyncio.create_task(buy(gateway, identified(payer, 2), **key))
        await asyncio.wait({refused}, timeout=0.3)
        clock.offset_s -= 400
        held.may_go_on.set()
        assert (await bought).status_code == 200
        answer = await refused
    assert (await answer.get_json()).get("charged") is None
    assert chain.usdc_balance(WALLET) == 40_000


async def test_a_refusal_that_waits_too_long_says_nothing_about_the_charge(
    gateway, provider, payer, chain
):
    gateway.services.payments.claimants.wait_s = 0.05
    header = payer.header()
    async with first_held(provider, lambda: buy(gateway, header)) as (bought, held):
        payer.transfer(EVERYTHING, to=ELSEWHERE)
        answer = await buy(gateway, header)
        chain.fund(payer.account.address, eth_wei=0, usdc_units=EVERYTHING)
        held.may_go_on.set()
        assert (await bought).status_code == 200
    assert answer.status_code == 500
    assert await answer.get_json() == {
        "error": "Another request with this payment is in progress. Send the same request again "
        "in a few seconds.",
        "code": "EXECUTION_ERROR",
    }
    again = await buy(gateway, header)
    assert (await again.get_json())["taskId"] == (await (await bought).get_json())["taskId"]


async def test_a_payment_on_record_for_another_request_is_refused_while_that_one_waits(
    gateway, payer, chain
):
    chain.set_automine(False)
    header = payer.header()
    bought = asyncio.create_task(buy(gateway, header))

    async def is_sent():
        return (await gateway.services.store.counts())["payments"].get("settling")

    await until(is_sent)
    again = asyncio.create_task(buy(gateway, header))
    answer = await buy(gateway, header, prompt="a house")
    body = await answer.get_json()
    assert (answer.status_code, body["error"]) == (402, SPENT)
    assert "charged" not in body
    assert not bought.done()
    chain.set_automine(True)
    assert {(await answer).status_code for answer in (bought, again)} == {200}


async def test_a_request_whose_payment_is_on_record_holds_up_no_refusal(gateway, payer, chain):
    chain.set_automine(False)
    services, header, repeat = gateway.services, payer.header(), Claimant()
    quote = services.quote(services.catalog["picture"].endpoint)
    request = GenerationRequest(prompt="a boat")
    payments = services.payments
    payments.outcome_s = 0.05
    bought = await payments.accept_x402(quote, request, header)
    payments.outcome_s = 20.0
    sent = SentRequest.of(quote, request)
    found = asyncio.create_task(payments.find_x402(sent, header, claimant=repeat))
    await until(repeat.decided.is_set)
    assert not found.done()
    chain.set_automine(True)
    assert (await found).task.id == bought.task.id


async def test_requests_that_are_all_refused_do_not_wait_for_each_other(gateway, payer):
    payer.transfer(EVERYTHING, to=ELSEWHERE)
    header = payer.header()
    answers = await asyncio.gather(*(buy(gateway, header) for _ in range(4)))
    assert [answer.status_code for answer in answers] == [402] * 4
    assert all([(await answer.get_json())["charged"] is False for answer in answers])


async def test_a_refusal_does_not_wait_for_another_payment(gateway, provider, payer, chain):
    async with first_held(provider, lambda: buy(gateway, payer.header())):
        poor = Payer(chain)
        poor.transfer(EVERYTHING, to=ELSEWHERE)
        answer = await buy(gateway, poor.header())
        assert (answer.status_code, (await answer.get_json())["charged"]) == (402, False)


async def test_a_payment_that_paid_for_another_request_is_not_called_uncharged(
    gateway, provider, payer, chain
):
    """A refusal for another reason used to contain that."""
    header = payer.header()
    async with first_held(provider, lambda: buy(gateway, header)) as (bought, held):
        payer.transfer(EVERYTHING, to=ELSEWHERE)
        refused = await held.refuse(lambda: buy(gateway, header, prompt="a house"))
        chain.fund(payer.account.address, eth_wei=0, usdc_units=EVERYTHING)
        held.may_go_on.set()
        assert (await bought).status_code == 200
        answer = await refused
    assert answer.status_code == 402
    assert "charged" not in await answer.get_json()


async def test_a_refused_transfer_does_not_wait_for_others_with_its_public_hash(
    gateway, provider, payer
):
    tx_hash, key = payer.transfer(20_000), {"Idempotency-Key": "boat"}
    async with first_held(provider, lambda: claim(gateway, tx_hash, headers=key)) as (first, held):
        gateway.services.readiness.is_draining = True
        answer = await claim(gateway, tx_hash, headers=key)
        assert not first.done()
        gateway.services.readiness.is_draining = False
        held.may_go_on.set()
        assert (await first).status_code == 200
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "20")
    assert "charged" not in await answer.get_data(as_text=True)


@pytest.mark.parametrize(("slug", "status"), [("nowhere", 404), ("picture", 503)])
async def test_only_a_402_waits_for_the_request_that_may_take_its_payment(
    gateway, provider, payer, slug, status
):
    header = payer.header()
    async with first_held(provider, lambda: buy(gateway, header)) as (bought, held):
        gateway.services.readiness.is_draining = status == 503
        answer = await buy(gateway, header, url=f"/api/x402/{slug}")
        assert not bought.done()
        gateway.services.readiness.is_draining = False
        held.may_go_on.set()
        assert (await bought).status_code == 200
    assert (answer.status_code, "Retry-After" in answer.headers) == (status, status == 503)
    assert "charged" not in await answer.get_data(as_text=True)


async def test_another_node_may_take_the_payment_so_its_charge_is_unknown(
    settings, provider, payer, chain, migrated_url
):
    settings.data_dir.mkdir(parents=True)
    one, other = (attrs.evolve(settings, database_url=migrated_url, node=name) for name in "ab")
    header = payer.header()
    async with running(one, provider) as node:
        async with running(other, provider) as elsewhere:
            await node.services.payments.cutoff_block()
            await node.services.store.nodes.renew(lease_s=60, now=time.time())
            async with first_held(provider, lambda: buy(elsewhere, header)) as (bought, held):
                payer.transfer(EVERYTHING, to=ELSEWHERE)
                refused = await buy(node, header)
                chain.fund(payer.account.address, eth_wei=0, usdc_units=EVERYTHING)
                held.may_go_on.set()
                assert (await bought).status_code == 200
            assert refused.status_code == 402
            assert "charged" not in await refused.get_json()
            # No node can take these.
            over = payer.header(valid_before=int(time.time()) - 90)
            for useless in ("garbage", payer.header(to=ELSEWHERE), over):
                assert (await (await buy(node, useless)).get_json())["charged"] is False
        await node.services.store.nodes.renew(lease_s=60, now=time.time())
        payer.transfer(chain.usdc_balance(payer.account.address), to=ELSEWHERE)
        alone = await buy(node, payer.header())
        assert (alone.status_code, (await alone.get_json())["charged"]) == (402, False)
