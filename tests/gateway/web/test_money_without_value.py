"""Play and test money are called so wherever a program reads of a payment."""

import contextlib
import json

import attrs
import pytest
from eth_account import Account

from gateway.domain.eip3009 import BASE, BASE_SEPOLIA, play_network
from gateway_demo.chain import PlayChain
from tests.authorizations import decoded
from tests.conftest import buy, running
from tests.plugins.gateway_mcp.app.agent import LEGACY, Agent

SEPOLIA = {"network": "base-sepolia"}
PLAY = {
    "play_key": "0x" + "12" * 32,
    "base_url": "http://127.0.0.1:8080",
    "bind": "127.0.0.1:8080",
}
DOCUMENTS = (
    "/llms.txt",
    "/.well-known/agent-manifest.json",
    "/.well-known/x402.json",
    "/.well-known/agent-registration.json",
    "/openapi.json",
)


@pytest.fixture
def changed(settings):
    """Returns the settings with changes, and with a chain that fits them."""
    with contextlib.ExitStack() as stack:

        def change(**changes):
            chosen = settings.changed(**changes)
            if chosen.chain.chain_id == BASE.chain_id:
                return chosen
            chain = stack.enter_context(PlayChain(chain_id=chosen.chain.chain_id))
            key = Account.from_key(str(chosen.settlement_key))
            chain.fund(key.address, usdc_units=0)
            return attrs.evolve(chosen, rpc_urls=(chain.rpc_url,))

        yield change


async def texts_of(gateway) -> dict[str, str]:
    """Return a program's texts before it pays, by their places."""
    texts = {}
    for path in DOCUMENTS:
        texts[path] = await (await gateway.client.get(path)).get_data(as_text=True)
    unpaid = await buy(gateway, None)
    texts["402"] = (await unpaid.get_json())["error"]
    texts["402, header"] = decoded(unpaid.headers["PAYMENT-REQUIRED"])["error"]
    agent = Agent(gateway, LEGACY)
    hello = {"protocolVersion": LEGACY, "capabilities": {}}
    opened = await agent.ask(
        "initialize", hello | {"clientInfo": {"name": "agent", "version": "1"}}
    )
    texts["MCP"] = opened["result"]["instructions"]
    tools = (await agent.ask("tools/list"))["result"]["tools"]
    texts["MCP, tool"] = next(one["description"] for one in tools if one["name"] == "picture")
    texts["MCP, price"] = json.dumps((await agent.call("picture", prompt="a boat"))["content"])
    return texts


@pytest.mark.parametrize(
    ("changes", "notice"),
    [
        (PLAY, play_network(BASE).notice),
        (PLAY | SEPOLIA, play_network(BASE_SEPOLIA).notice),
        (SEPOLIA, BASE_SEPOLIA.notice),
    ],
    ids=["play", "demo", "test"],
)
async def test_each_place_has_the_notice(changed, provider, changes, notice):
    async with running(changed(**changes), provider) as gateway:
        await gateway.services.lifecycle.warmed.wait()
        missing = [place for place, text in (await texts_of(gateway)).items() if notice not in text]
        assert missing == []
        manifest = await (await gateway.client.get("/.well-known/agent-manifest.json")).get_json()
        price = await (await buy(gateway, None)).get_json()
        assert manifest["money"] == price["money"]
        assert manifest["money"]["hasValue"] is False


async def test_real_money_has_no_notice(gateway):
    for place, text in (await texts_of(gateway)).items():
        assert "has no value" not in text, place
        assert "play USDC" not in text, place
    manifest = await (await gateway.client.get("/.well-known/agent-manifest.json")).get_json()
    assert "money" not in manifest
    assert "money" not in await (await buy(gateway, None)).get_json()


async def test_a_refused_payment_keeps_the_standard_reason(settings, provider, payer):
    async with running(settings.changed(**PLAY), provider) as gateway:
        answer = await buy(gateway, payer.header(1))
        assert answer.status_code == 402
        reason = (await answer.get_json())["error"]
    assert reason == "invalid_exact_evm_payload_authorization_value_mismatch"


# -- the offer that fails on purpose


@pytest.mark.parametrize(
    ("changes", "is_sold"),
    [(PLAY | {"sandbox": True}, True), ({"sandbox": True}, False), (PLAY, False)],
)
async def test_a_failure_is_sold_for_play_money_only(settings, provider, changes, is_sold):
    async with running(settings.changed(**changes), provider) as gateway:
        assert ("fails-on-purpose" in gateway.services.catalog.slugs()) is is_sold


async def test_it_fails_and_the_price_comes_back_by_itself(settings, provider, payer, chain):
    refunds = Account.create()
    chain.fund(refunds.address, eth_wei=10**18, usdc_units=10**6)
    demo = attrs.evolve(settings.changed(**PLAY, sandbox=True), refund_key=refunds.key.hex())
    before = chain.usdc_balance(payer.account.address)
    async with running(demo, provider) as gateway:
        url = "/api/x402/fails-on-purpose"
        bought = await buy(gateway, payer.header(10_000), url=url, prompt="a boat")
        task = await gateway.wait((await bought.get_json())["taskId"])
        assert (task["status"], task["code"]) == ("failed", "GENERATION_FAILED")
        assert "fails on purpose" in task["error"]
        assert "automatically" in task["refund"]["message"]
        await gateway.services.refunds.sweep()
        await gateway.services.refunds.sweep()
        answer = await gateway.client.get(f"/api/task/{task['taskId']}")
        assert (await answer.get_json())["refund"]["state"] == "refunded"
        # It stays on sale, however often it fails.
        assert gateway.services.catalog["fails-on-purpose"].sells_now
    assert chain.usdc_balance(payer.account.address) == before
