"""Every place says the same about the price of a failed generation, with these settings."""

import html
import re

import attrs
import pytest

from gateway.settings import EndpointOverride
from tests.conftest import buy, running
from tests.gateway.refunds.conftest import fail_directly, fail_once
from tests.gateway.refunds.steps import refund_of, until_problem, until_state
from tests.plugins.gateway_mcp.app.agent import LEGACY, Agent

SETTINGS = {
    "automatic": {"refunds": ""},
    "review": {"refunds": "manual"},
    "none": {"refunds": "", "refund_key": ""},
}
# Said by earlier versions, whatever the settings were.
FIXED = ("your money is due back", "shows your refund due")


async def read(gateway, path: str) -> str:
    text = await (await gateway.client.get(path)).get_data(as_text=True)
    return re.sub(r"\s+", " ", html.unescape(text))


async def spoken_by_mcp(gateway) -> list[str]:
    """Return the server's instructions, and the words of a price."""
    agent = Agent(gateway, LEGACY)
    hello = {"protocolVersion": LEGACY, "capabilities": {}}
    client = {"clientInfo": {"name": "agent", "version": "1"}}
    opened = await agent.ask("initialize", hello | client)
    priced = await agent.call("picture", prompt="a boat")
    return [opened["result"]["instructions"], priced["content"][1]["text"]]


@pytest.mark.parametrize("kind", SETTINGS)
async def test_each_document_page_and_402_has_the_sentence(settings, provider, kind):
    chosen = attrs.evolve(settings, contact_email="me@example.com", **SETTINGS[kind])
    async with running(chosen, provider) as gateway:
        await gateway.services.refund_promises.refresh()
        promise = gateway.services.refund_promise()
        assert promise.on_failure == kind
        for path in ("/", "/play/picture", "/llms.txt", "/openapi.json"):
            text = await read(gateway, path)
            assert promise.sentence in text, path
            assert not [words for words in FIXED if words in text], path
        # On the front page: below the title, and where failures are explained.
        assert (await read(gateway, "/")).count(promise.sentence) == 2
        manifest = await (await gateway.client.get("/.well-known/agent-manifest.json")).get_json()
        assert manifest["refundPolicy"]["sentence"] == promise.sentence
        price = await (await buy(gateway, None)).get_json()
        assert promise.sentence in price["error"]
        assert [promise.sentence in text for text in await spoken_by_mcp(gateway)] == [True, True]


async def test_a_page_follows_the_promise_for_its_own_price(settings, provider, payer):
    """The dearest offer is never covered, so the promise for all offers stays the same."""
    dear = {"paper": EndpointOverride(price="5")}
    change = {"refunds": "", "refund_daily_cap": "0.03", "endpoints": dear}
    async with running(attrs.evolve(settings, **change), provider) as gateway:
        promises = gateway.services.refund_promises
        await promises.refresh()
        assert gateway.services.refund_promise().on_failure == "review"
        assert "back to the payer automatically" in await read(gateway, "/play/picture")
        await fail_once(gateway, payer, provider)
        await promises.refresh()
        assert "back to the payer automatically" not in await read(gateway, "/play/picture")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("review", "the operator decides"),
        ("none", "this gateway cannot send one"),
    ],
)
async def test_the_receipt_of_a_failure_says_what_was_said_before(
    settings, provider, payer, kind, words
):
    async with running(attrs.evolve(settings, **SETTINGS[kind]), provider) as gateway:
        assert words in gateway.services.refund_promise().sentence
        task = await fail_once(gateway, payer, provider)
        assert words in task["refund"]["message"]
        # The same by MCP and in a stream.
        shown = await Agent(gateway).call("get_task", taskId=task["taskId"])
        assert shown["structuredContent"]["refund"] == task["refund"]


async def test_the_receipt_follows_an_automatic_refund(automatic, provider, payer):
    async with running(automatic, provider) as gateway:
        task = await fail_once(gateway, payer, provider)
        assert task["refund"]["message"]
        refund = await until_state(gateway, task, "refunded")
    assert refund["message"] == "It was sent back to you."


async def test_an_unsigned_transfer_is_not_called_automatic(automatic, provider, payer):
    async with running(automatic, provider) as gateway:
        task = await fail_directly(gateway, payer, provider)
        refund = await refund_of(gateway, task)
    assert refund["message"].startswith("It is due back to you, and the operator decides")


async def test_an_empty_refund_key_is_said_on_the_receipt(automatic, provider, payer, chain):
    empty = attrs.evolve(automatic, refund_key="0x" + "4d" * 32)
    async with running(empty, provider) as gateway:
        task = await fail_once(gateway, payer, provider)
        await until_problem(gateway, task, "too little ETH")
        refund = await refund_of(gateway, task)
    assert "cannot send it now, and tries until it can" in refund["message"]


async def test_the_promise_of_mcp_follows_the_money_of_the_refund_key(settings, provider, chain):
    poor = attrs.evolve(settings, refunds="", refund_key="0x" + "4e" * 32)
    async with running(poor, provider) as gateway:
        promises = gateway.services.refund_promises
        await promises.refresh()
        before, _ = await spoken_by_mcp(gateway)
        assert "the operator decides about sending it" in before
        chain.fund(gateway.services.refunds.address, eth_wei=10**18, usdc_units=10**6)
        await promises.refresh()
        after, _ = await spoken_by_mcp(gateway)
        assert "sends the price back to the payer automatically" in after
