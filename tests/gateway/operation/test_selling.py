"""All pages agree on the endpoints on sale, and no buyer signs in vain."""

import contextlib

import attrs
import pytest
from x402 import x402ClientSync
from x402.http import x402HTTPClientSync
from x402.mechanisms.evm.exact import register_exact_evm_client

from gateway import ChainUnavailable
from gateway.errors import StoreUnavailable
from gateway_operator.state import Operator
from tests.authorizations import decoded
from tests.conftest import WALLET, buy, running
from tests.gateway.operation.test_obstacles import call_token, check_now, wallet_without_gas
from tests.gateway.web.orders import FILE
from tests.plugins.gateway_operator.app.test_api import API, token_of
from tests.plugins.gateway_operator.app.test_api_of_endpoints import PATH, post
from tests.proof.faults.proxy import EVERY, unavailable


@pytest.fixture
async def open_gateway(settings, provider, proxy, clock):
    """A gateway that uses the chain through a proxy, without background checks."""
    async with running(attrs.evolve(settings, rpc_urls=(proxy.url,)), provider, now=clock) as one:
        await one.silence_background()
        await check_now(one)
        # No caching.
        one.services.shared_checks.ttl_s = 0.0
        one.services.find(Operator).desk.shared.ttl_s = 0.0
        one.headers = await token_of(one)
        yield one


async def get(gateway, path) -> dict:
    return await (await gateway.client.get(path)).get_json()


async def said(gateway) -> tuple[str, int, str]:
    """Return the result of /api/ready, its status, and the overview's text.

    The manifest, the shop and the 402 must agree. While the gateway stops, a price is still given:
    the purchase with it is asked to retry.
    """
    answer = await gateway.client.get("/api/ready")
    selling = (await answer.get_json())["selling"]
    assert (await get(gateway, "/.well-known/agent-manifest.json"))["selling"] == selling
    shop = await (await gateway.client.get("/")).get_data(as_text=True)
    assert ("Try it for" in shop) == (selling != "nothing")
    assert ("By transfer only" in shop) == (selling == "transfers")
    unpaid = await buy(gateway, None)
    offers = decoded(unpaid.headers["PAYMENT-REQUIRED"])["accepts"]
    assert unpaid.status_code == 402
    is_offered = selling == "everything" or gateway.services.readiness.is_draining
    reply = await unpaid.get_json()
    assert bool(offers) == bool(reply["accepts"]) == is_offered
    assert reply["error"].startswith("Payment required") == is_offered
    reply = await gateway.client.get(f"{API}/overview?range=24h", headers=gateway.headers)
    overview = (await reply.get_json())["selling"]
    return selling, answer.status_code, overview


def set_clock_wrong(gateway, proxy, clock):
    clock.offset_s = 600


def silence_chain(gateway, proxy, clock):
    proxy.break_call(EVERY, unavailable)


def pause_token(gateway, proxy, clock):
    call_token(proxy.chain, "pause")


def blacklist_wallet(gateway, proxy, clock):
    call_token(proxy.chain, "blacklist", WALLET)


def drain(gateway, proxy, clock):
    gateway.services.readiness.is_draining = True


def fill_disk(gateway, proxy, clock):
    greedy = attrs.evolve(gateway.services.settings, min_free_disk_mb=10**9)
    gateway.services.readiness.settings = gateway.services.settings = greedy


async def check_again(gateway):
    """Check for obstacles, as the gateway does every minute."""
    with contextlib.suppress(ChainUnavailable):
        await check_now(gateway)


SCENES = {
    set_clock_wrong: ("transfers", 200, "some"),
    silence_chain: ("nothing", 200, "no"),
    pause_token: ("nothing", 200, "no"),
    blacklist_wallet: ("nothing", 200, "no"),
    drain: ("nothing", 503, "no"),
    fill_disk: ("nothing", 503, "no"),
}


@pytest.mark.parametrize("change", SCENES, ids=lambda one: one.__name__)
async def test_every_place_says_the_same(open_gateway, proxy, clock, change):
    assert await said(open_gateway) == ("everything", 200, "yes")
    change(open_gateway, proxy, clock)
    await check_again(open_gateway)
    assert await said(open_gateway) == SCENES[change]


async def test_a_chain_that_answers_again_is_sold_for_again(open_gateway, proxy, payer):
    silence_chain(open_gateway, proxy, None)
    await check_again(open_gateway)
    assert (await said(open_gateway))[0] == "nothing"
    proxy.heal()
    await check_again(open_gateway)
    assert await said(open_gateway) == ("everything", 200, "yes")
    assert (await buy(open_gateway, payer.header())).status_code == 200


async def test_a_task_is_polled_while_the_chain_is_silent(open_gateway, proxy, payer):
    task_id = (await (await buy(open_gateway, payer.header())).get_json())["taskId"]
    await open_gateway.wait(task_id)
    silence_chain(open_gateway, proxy, None)
    await check_again(open_gateway)
    assert (await said(open_gateway))[:2] == ("nothing", 200)
    assert (await get(open_gateway, f"/api/task/{task_id}"))["status"] == "completed"


async def test_what_a_question_finds_is_told_in_its_answer_and_stops_nothing_else(
    open_gateway, proxy, monkeypatch
):
    """A client may ask at a bad moment; prices are given until the gateway itself has checked."""
    silence_chain(open_gateway, proxy, None)
    assert (await get(open_gateway, "/api/ready"))["selling"] == "nothing"
    proxy.heal()

    async def refused():
        raise StoreUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(open_gateway.services.store, "check_writable", refused)
        assert (await get(open_gateway, "/api/ready"))["selling"] == "nothing"
    assert await said(open_gateway) == ("everything", 200, "yes")


async def test_a_start_beside_a_silent_chain_offers_nothing(settings, provider, proxy):
    silence_chain(None, proxy, None)
    async with running(attrs.evolve(settings, rpc_urls=(proxy.url,)), provider) as gateway:
        await gateway.services.lifecycle.warmed.wait()
        unpaid = await (await buy(gateway, None)).get_json()
    assert unpaid["accepts"] == []
    assert "cannot read the chain" in unpaid["error"]


async def test_a_paused_endpoint_is_not_offered_and_others_are(open_gateway):
    paused = await post(open_gateway, f"{PATH}/pause", open_gateway.headers, reason="for a while")
    assert paused.status_code == 200
    unpaid = await buy(open_gateway, None)
    reply = await unpaid.get_json()
    assert (unpaid.status_code, reply["accepts"]) == (402, [])
    assert "paused" in reply["error"]
    assert decoded(unpaid.headers["PAYMENT-REQUIRED"])["accepts"] == []
    other = await buy(open_gateway, None, url="/api/x402/paper", **FILE)
    assert (await other.get_json())["accepts"]


async def test_without_gas_a_buyer_reads_how_to_transfer_and_the_transfer_buys(
    settings, provider, chain, payer, gas_key
):
    poor, _ = wallet_without_gas(settings, gas_key, chain)
    async with running(poor, provider) as gateway:
        await gateway.services.lifecycle.warmed.wait()
        await check_now(gateway)
        unpaid = await buy(gateway, None)
        error = (await unpaid.get_json())["error"]
        assert f"Send 0.02 USDC on base to {settings.wallet}" in error
        assert f"{settings.base_url}/api/proxy-generate" in error
        tx_hash = payer.transfer(20_000)
        body = {"slug": "picture", "prompt": "a boat", "txHash": tx_hash}
        bought = await gateway.client.post("/api/proxy-generate", json=body)
        assert bought.status_code == 200


async def test_the_official_client_signs_nothing_where_nothing_can_be_settled(
    open_gateway, clock, payer
):
    set_clock_wrong(open_gateway, None, clock)
    await check_now(open_gateway)
    unpaid = await buy(open_gateway, None)
    official = register_exact_evm_client(x402ClientSync(), payer.account)
    required = x402HTTPClientSync(official).get_payment_required_response(
        unpaid.headers.get, await unpaid.get_json()
    )
    with pytest.raises(Exception, match="No payment requirements"):
        official.create_payment_payload(required)
