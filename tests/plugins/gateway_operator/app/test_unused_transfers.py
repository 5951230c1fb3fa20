"""`gateway transfers unused`: only incoming money from others that paid for nothing."""

import asyncio
import json

import pytest
from click.testing import CliRunner
from eth_account import Account

from gateway.cli import main
from gateway.errors import ActionRefused
from gateway.settings import variable
from gateway_demo.chain import FAUCET_KEY, OTHER_TOKEN
from gateway_demo.token import call_data
from gateway_operator.actions.transfers import mark_seen
from gateway_operator.audit_log import Actor
from gateway_operator.state import Operator
from tests.conftest import WALLET, running

NAMES = ("base_url", "wallet", "data_dir", "settlement_key")
NOW = ("--hours", "0", "--json")


@pytest.fixture
def run(settings, provider):
    """Run `gateway transfers unused` beside a gateway that was started once."""

    async def start_once() -> None:
        async with running(settings, provider):
            pass

    asyncio.run(start_once())
    env = {variable(name): str(getattr(settings, name)) for name in NAMES}
    env["GATEWAY_RPC_URLS"] = ",".join(settings.rpc_urls)
    arguments = ["transfers", "unused"]
    return lambda *words, **more: CliRunner().invoke(main, arguments + list(words), env=env | more)


def from_anybody(chain, sender: str, units: int) -> None:
    """Log a transfer in another account's name: of nothing, which needs no allowance."""
    data = call_data("transferFrom", ["address", "address", "uint256"], sender, WALLET, units)
    chain.send_transaction(FAUCET_KEY, chain.usdc, data)


def senders(result) -> list[str]:
    assert result.exit_code == 0, result.output
    return [row["from"] for row in json.loads(result.stdout)]


def test_transfers_of_nothing_are_left_out(run, chain, payer):
    """Anyone can log one in any name, to trick the operator into sending money there."""
    victim = Account.create().address
    from_anybody(chain, victim, 0)
    from_anybody(chain, WALLET, 0)
    payer.transfer(0)
    assert senders(run(*NOW)) == []
    payer.transfer(1)
    assert senders(run(*NOW)) == [payer.account.address.lower()]


def test_what_the_wallet_sent_to_itself_is_left_out(run, payer):
    own = payer.account.address
    payer.transfer(30_000, to=own)
    assert senders(run(*NOW, GATEWAY_WALLET=own)) == []


def test_transfers_of_another_token_are_left_out(run, chain, payer):
    chain.mint(WALLET, 30_000, asset=OTHER_TOKEN)
    payer.transfer(30_000)
    assert senders(run(*NOW)) == [payer.account.address.lower()]


@pytest.mark.parametrize("option", ["--days", "--hours"])
@pytest.mark.parametrize("amount", ["nan", "inf", "-1", "much"])
def test_a_time_that_is_none_is_a_mistake(run, option, amount):
    result = run(option, amount)
    assert (result.exit_code, option in result.output) == (2, True), result.output
    assert "Traceback" not in result.output


def test_what_was_done_about_a_transfer_is_shown_with_it(run, payer, settings):
    payer.transfer(1)
    (row,) = json.loads(run(*NOW).stdout)
    assert row["seen"] == ""
    env = {variable(name): str(getattr(settings, name)) for name in NAMES}
    env["GATEWAY_RPC_URLS"] = ",".join(settings.rpc_urls)
    words = ["transfers", "seen", row["transaction"], str(row["log"]), "--reason", "sent back"]
    assert CliRunner().invoke(main, words, env=env).stdout == "Marked as seen.\n"
    (row,) = json.loads(run(*NOW).stdout)
    assert row["seen"] == "sent back"
    again = CliRunner().invoke(main, words, env=env)
    assert (again.exit_code, "seen already" in again.output) == (1, True)


async def test_a_transfer_that_paid_is_not_marked(gateway, payer):
    paid = payer.transfer(20_000)
    body = {"slug": "picture", "prompt": "a boat", "txHash": paid}
    answer = await gateway.client.post("/api/proxy-generate", json=body)
    task_id = (await answer.get_json())["taskId"]
    task = await gateway.services.store.task(task_id)
    desk, actor = gateway.services.find(Operator).desk, Actor(door="page", name="s1")
    with pytest.raises(ActionRefused, match=f"paid for task {task_id}"):
        await mark_seen(desk, actor, paid, task.payment.paid_log_index, reason="x")
    assert await desk.records.actions(None, 9) == []
