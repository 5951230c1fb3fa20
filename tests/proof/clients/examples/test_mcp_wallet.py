"""`gateway mcp-wallet`: the official client of MCP buys from a gateway on the embedded chain."""

import json
import sys

import pytest
from mcp import Client, StdioServerParameters

from gateway.concurrency.late_imports import import_ethereum
from tests.conftest import PNG, WALLET
from tests.plugins.gateway_buyer.app.mcp_wallet import Agent, Person, connected, make_wallet
from tests.proof.clients.examples.conftest import environment
from tests.proof.clients.examples.relay import LOST, open_relay

PRICE = 20_000
BOAT = {"slug": "sandbox-image", "prompt": "a boat"}


@pytest.fixture
def command(site, payer, tmp_path):
    """The command that Claude, Cursor or Codex would run, with a keystore."""
    eth_keyfile = import_ethereum("eth_keyfile")
    secret = bytes(payer.account.key)
    content = eth_keyfile.create_keyfile_json(secret, b"open", kdf="pbkdf2", iterations=1)
    (tmp_path / "key.json").write_text(json.dumps(content))
    options = {
        "--key": tmp_path / "key.json",
        "--password": "env:WALLET_PASSWORD",
        "--url": site.url,
        "--folder": tmp_path / "files",
        "--ask-above": "0.019999",
        "--per-day": "0.03",
    }
    words = [str(word) for pair in options.items() for word in pair]
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "gateway", "mcp-wallet", *words],
        env=environment(XDG_STATE_HOME=str(tmp_path / "state"), WALLET_PASSWORD="open"),
        cwd=tmp_path,
    )


async def test_a_program_that_starts_it_over_stdio_buys(command, chain, payer, tmp_path, capfd):
    person = Person()
    async with Client(command, elicitation_callback=person.answer) as client:
        agent = Agent(client)
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert tools == {"list_offers", "get_price", "buy", "get_result", "get_wallet"}
        slugs = [offer["slug"] for offer in (await agent.ask("list_offers"))["offers"]]
        assert "sandbox-image" in slugs
        assert (await agent.ask("get_price", **BOAT))["price"] == "0.02"
        bought = await agent.ask("buy", **BOAT)
    # Another process goes on where the first one ended.
    async with Client(command, elicitation_callback=person.answer) as client:
        agent = Agent(client)
        assert (await agent.ask("buy", **BOAT))["taskId"] == bought["taskId"]
        other = await agent.fail("buy", slug="sandbox-image", prompt="a ship")
        assert "0.02 of the 0.03 USDC for 24 hours" in other
        wallet = await agent.ask("get_wallet")
    assert (tmp_path / "files" / bought["files"][0]).read_bytes() == PNG
    assert chain.receipt(bought["transaction"])["status"] == "0x1"
    assert (chain.usdc_balance(WALLET), len(person.questions)) == (PRICE, 1)
    assert (wallet["address"], wallet["left"]) == (payer.account.address, "0.01")
    assert bytes(payer.account.key).hex() not in "".join(capfd.readouterr())


async def test_a_lost_answer_is_paid_once(site, chain, payer, tmp_path):
    wallet = make_wallet(tmp_path, secret=bytes(payer.account.key))
    with open_relay(site.url) as relay:
        relay.script = [LOST]
        async with connected(wallet) as agent:
            # The files' links lead to the gateway itself, and not through the relay.
            lost = await agent.call("buy", **BOAT, gateway=relay.url)
            found = await agent.call("buy", **BOAT, gateway=relay.url)
            task_id = found.structured_content["taskId"]
            saved = await agent.ask("get_result", task_id=task_id, gateway=site.url)
    assert lost.is_error
    assert (tmp_path / "files" / saved["files"][0]).read_bytes() == PNG
    assert (chain.usdc_balance(WALLET), wallet.allowance.spent()) == (PRICE, PRICE)
