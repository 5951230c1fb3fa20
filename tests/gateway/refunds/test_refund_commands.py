"""`gateway refunds` and `gateway transfers`, typed by the operator beside the gateway."""

import asyncio
import json

import attrs
import pytest
from click.testing import CliRunner
from eth_account import Account

from gateway.cli import main
from tests.conftest import running
from tests.gateway.refunds.conftest import environment, fail_once


@pytest.fixture
def owed(settings, provider, payer, clock) -> str:
    """A failed task of a stopped gateway."""

    async def buy_one() -> str:
        async with running(settings, provider, now=clock) as gateway:
            return (await fail_once(gateway, payer, provider))["taskId"]

    return asyncio.run(buy_one())


def rows(result) -> list[dict]:
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return json.loads(result.stdout)


def test_what_is_owed_is_listed_with_its_reason(run, owed, payer):
    (row,) = rows(run("refunds", "list", "--json"))
    assert row["task"] == owed
    assert (row["amount"], row["state"], row["why"]) == ("0.02", "refund_due", "content_policy")
    assert row["to"] == payer.account.address.lower()
    assert owed[:8] in run("refunds", "list").stdout


def test_paying_a_named_refund_approves_and_sends_it(run, owed, payer, chain):
    (row,) = rows(run("refunds", "pay", owed, "--json"))
    assert (row["state"], row["problem"]) == ("refunded", "")
    assert chain.usdc_balance(payer.account.address) == 100_000_000
    assert row["transaction"].startswith("0x")
    assert run("refunds", "list").stdout == "Nothing is owed.\n"
    assert rows(run("refunds", "list", "--all", "--json"))[0]["state"] == "refunded"


def test_an_approved_refund_is_paid_by_pay_alone(run, owed, chain, payer):
    assert run("refunds", "pay").stdout.startswith("Nothing is approved.")
    assert run("refunds", "approve", owed).stdout == "Approved: 1.\n"
    (row,) = rows(run("refunds", "pay", "--json"))
    assert row["state"] == "refunded"


def test_a_dry_run_shows_and_sends_nothing(run, owed, payer, chain):
    (row,) = rows(run("refunds", "pay", owed, "--dry-run", "--json"))
    assert (row["state"], row["problem"], row["decision"]) == ("refund_due", "", "")
    assert chain.usdc_balance(payer.account.address) == 100_000_000 - 20_000


def test_a_dry_run_says_what_is_missing(run, owed):
    poor = Account.create().key.hex()
    result = run("refunds", "pay", owed, "--dry-run", "--json", GATEWAY_REFUND_KEY=poor)
    assert "too little ETH" in rows(result)[0]["problem"]
    assert result.exit_code == 1


def test_a_refund_goes_where_the_operator_says(run, owed, chain):
    other = Account.create().address
    run("refunds", "approve", owed, "--to", other, "--note", "asked by mail")
    assert rows(run("refunds", "pay", "--json"))[0]["state"] == "refunded"
    assert chain.usdc_balance(other) == 20_000


def test_a_rejected_refund_is_not_paid(run, owed, chain, payer):
    assert run("refunds", "reject", owed, "--note", "abuse").stdout == "Rejected: 1.\n"
    assert run("refunds", "pay").stdout.startswith("Nothing is approved.")
    assert chain.usdc_balance(payer.account.address) == 100_000_000 - 20_000


@pytest.mark.parametrize(
    ("words", "variables", "message"),
    [
        (("pay", "nonsense"), {}, "Nothing is owed for task nonsense."),
        (("approve", "nonsense"), {}, "Nothing is owed for task nonsense."),
        (("approve",), {}, "Name the tasks"),
        (("approve", "x", "--to", "0x1"), {}, "40 hexadecimal digits"),
        (("reject", "x"), {}, "--note"),
        (("pay",), {"GATEWAY_REFUND_KEY": ""}, "GATEWAY_REFUND_KEY is not set"),
        (("list",), {"GATEWAY_DATA_DIR": "nowhere"}, "There is no database"),
    ],
)
def test_mistakes_get_one_sentence(run, owed, words, variables, message):
    result = run("refunds", *words, **variables)
    assert message in result.output
    assert result.exit_code in (1, 2)
    assert "Traceback" not in result.output


def test_a_paid_refund_cannot_be_decided_again(run, owed):
    run("refunds", "pay", owed)
    result = run("refunds", "approve", owed)
    assert (result.exit_code, "refunded already" in result.output) == (1, True)


def test_transfers_that_nobody_claimed_are_listed(run, owed, payer, chain):
    """The settlement of the bought picture paid; the plain transfer paid for nothing."""
    lost = payer.transfer(30_000)
    (row,) = rows(run("transfers", "unused", "--hours", "0", "--json"))
    assert (row["transaction"], row["amount"]) == (lost, "0.03")
    assert row["from"] == payer.account.address.lower()


def test_tasks_are_listed_with_their_payments(run, owed):
    (row,) = rows(run("tasks", "--json"))
    assert (row["task"], row["status"], row["payment"]) == (owed, "failed", "refund_due")
    assert (row["endpoint"], row["amount"], row["details"]) == ("picture", "0.02", "content_policy")
    assert rows(run("tasks", "--status", "completed", "--json")) == []
    assert run("tasks", "--status", "queued").stdout == "No matching tasks.\n"


def test_a_young_transfer_may_still_be_claimed(run, owed, payer):
    payer.transfer(30_000)
    result = run("transfers", "unused")
    assert result.stdout == "No unused transfers.\n"


def test_a_silent_chain_gets_one_sentence(run, owed):
    result = run("transfers", "unused", GATEWAY_RPC_URLS="http://127.0.0.1:9")
    assert (result.exit_code, "does not answer" in result.output) == (1, True)


async def test_the_commands_work_beside_the_running_gateway(
    settings, provider, payer, clock, chain
):
    async with running(settings, provider, now=clock) as gateway:
        task = await fail_once(gateway, payer, provider)
        arguments = ["refunds", "pay", task["taskId"], "--json"]
        runner, env = CliRunner(), environment(attrs.evolve(settings))
        result = await asyncio.to_thread(runner.invoke, main, arguments, env=env)
        assert rows(result)[0]["state"] == "refunded"
        shown = await gateway.client.get(f"/api/task/{task['taskId']}")
        assert (await shown.get_json())["refund"]["state"] == "refunded"
    assert chain.usdc_balance(payer.account.address) == 100_000_000


def test_decisions_are_written_down_with_who_made_them(run, owed):
    assert run("actions").stdout == "No matching actions.\n"
    run("refunds", "reject", owed, "--reason", "abuse")
    run("refunds", "approve", owed)
    assert run("refunds", "take-back", owed).stdout == "Taken back.\n"
    back, approved, rejected = rows(run("actions", "--json"))
    assert [one["action"] for one in (back, approved, rejected)] == [
        "refund.take_back",
        "refund.approve",
        "refund.reject",
    ]
    assert (rejected["subject"], rejected["reason"], rejected["door"]) == (owed, "abuse", "cli")
    assert rejected["who"]
    (older,) = rows(run("actions", "--json", "--before", str(approved["id"])))
    assert older == rejected
    assert "refund.reject" in run("actions", "--action", "refund.reject").stdout
    assert run("refunds", "take-back", owed).exit_code == 1


def test_an_approval_that_cannot_be_paid_says_so(run, owed, chain):
    key = Account.create()
    again = run("refunds", "approve", owed, GATEWAY_REFUND_KEY=key.key.hex())
    assert again.stdout == "Approved: 1.\n"
    assert f"{key.address.lower()} holds no ETH" in again.stderr


def test_an_approval_that_can_be_paid_warns_of_nothing(run, owed):
    output = run("refunds", "approve", owed)
    assert (output.stdout, output.stderr) == ("Approved: 1.\n", "")
