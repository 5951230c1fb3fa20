"""Edge cases of the money commands: all or none, repeats, exit codes, a foreign database."""

import asyncio
import contextlib
import sqlite3

import pytest
from eth_account import Account

from gateway.store.sqlite import migrations
from tests.conftest import Payer, running
from tests.gateway.refunds.conftest import fail_once
from tests.gateway.refunds.test_refund_commands import rows
from tests.migrated_databases import put_database
from tests.proof.faults.proxy import error

EVERYTHING = 100_000_000  # what a payer starts with
SOON = ("--wait", "0.3", "--json")


@pytest.fixture
def owed(settings, provider, chain, clock) -> list[str]:
    """Two failed tasks of a stopped gateway."""

    async def buy_two() -> list[str]:
        async with running(settings, provider, now=clock) as gateway:
            failed = [await fail_once(gateway, Payer(chain), provider) for _ in range(2)]
            return [task["taskId"] for task in failed]

    return asyncio.run(buy_two())


def shown(run) -> dict[str, tuple[str, str]]:
    listed = rows(run("refunds", "list", "--all", "--json"))
    return {row["task"]: (row["state"], row["decision"]) for row in listed}


@pytest.mark.parametrize("command", ["pay", "approve"])
def test_one_name_that_is_wrong_and_none_is_approved(run, owed, command):
    result = run("refunds", command, *owed, "nonsense")
    assert (result.exit_code, "Nothing is owed for task nonsense." in result.output) == (1, True)
    assert shown(run) == dict.fromkeys(owed, ("refund_due", ""))


@pytest.mark.parametrize("command", ["pay", "approve"])
def test_one_that_is_paid_already_and_none_is_approved(run, owed, command):
    run("refunds", "pay", owed[1])
    result = run("refunds", command, *owed)
    assert (result.exit_code, "refunded already" in result.output) == (1, True)
    assert shown(run)[owed[0]] == ("refund_due", "")


def test_one_that_was_signed_for_another_address_and_none_is_approved(run, owed, settings, chain):
    chain.set_automine(False)
    run("refunds", "pay", owed[1], *SOON)
    with contextlib.closing(sqlite3.connect(settings.data_dir / "gateway.db")) as db:
        db.execute("UPDATE payments SET state = 'refund_failed' WHERE state = 'refunding'")
        db.commit()
    result = run("refunds", "approve", *owed, "--to", Account.create().address, "--note", "x")
    assert (result.exit_code, "was signed for" in result.output) == (1, True)
    assert shown(run)[owed[0]] == ("refund_due", "")


def test_waiting_for_no_number_is_a_mistake(run, owed):
    """NaN is never reached: the command would not end."""
    result = run("refunds", "pay", owed[0], "--wait", "nan")
    assert (result.exit_code, "--wait" in result.output) == (2, True)
    assert shown(run)[owed[0]] == ("refund_due", "")


def test_paying_again_what_is_on_its_way_waits_for_it(run, owed, chain):
    chain.set_automine(False)
    for _ in range(2):
        result = run("refunds", "pay", owed[0], *SOON)
        assert (result.exit_code, rows(result)[0]["state"]) == (1, "refunding")
    chain.set_automine(True)
    result = run("refunds", "pay", owed[0], "--json")
    assert (result.exit_code, rows(result)[0]["state"]) == (0, "refunded")


def test_paying_succeeds_only_where_every_refund_is_paid(run, owed, chain):
    assert run("refunds", "pay", owed[0], "--dry-run").exit_code == 0
    assert run("refunds", "pay", owed[0]).exit_code == 0
    run("refunds", "approve", owed[1])
    chain.set_automine(False)
    assert run("refunds", "pay", *SOON).exit_code == 1
    chain.set_automine(True)
    assert run("refunds", "pay").exit_code == 0


def test_a_refund_that_is_not_sent_for_no_noted_reason_is_no_success(run, owed, proxy):
    """The endpoint responds to everything except gas prices."""
    proxy.break_call("eth_maxPriorityFeePerGas", error)
    result = run("refunds", "pay", owed[0], *SOON, GATEWAY_RPC_URLS=proxy.url)
    (row,) = rows(result)
    assert (result.exit_code, row["state"], row["problem"]) == (1, "refund_due", "")


def test_a_refund_with_a_problem_is_no_success(run, owed):
    poor = Account.create().key.hex()
    result = run("refunds", "pay", owed[0], *SOON, GATEWAY_REFUND_KEY=poor)
    assert (result.exit_code, "ETH" in rows(result)[0]["problem"]) == (1, True)


def balances(chain, settings) -> int:
    return chain.usdc_balance(Account.from_key(settings.refund_key).address)


def test_another_networks_database_is_refused(run, owed, settings, chain):
    with contextlib.closing(sqlite3.connect(settings.data_dir / "gateway.db")) as db:
        db.execute("UPDATE meta SET value = 'base-sepolia' WHERE key = 'network'")
        db.commit()
    result = run("refunds", "pay", owed[0])
    assert (result.exit_code, "belongs to network base-sepolia" in result.output) == (1, True)
    assert balances(chain, settings) == 1_000_000


def test_the_settlement_key_sends_no_refunds(run, owed, settings, chain):
    """The gateway itself would not start with it: two senders would compete for nonces."""
    key = str(settings.settlement_key)
    chain.fund(Account.from_key(key).address, eth_wei=10**18, usdc_units=1_000_000)
    result = run("refunds", "pay", owed[0], GATEWAY_REFUND_KEY=key)
    assert (result.exit_code, "is the settlement key" in result.output) == (1, True)
    assert chain.usdc_balance(Account.from_key(key).address) == 1_000_000


@pytest.mark.parametrize("words", [("refunds", "list"), ("transfers", "unused"), ("tasks",)])
def test_an_older_versions_database_is_left_as_it_is(run, settings, words, monkeypatch):
    """A gateway of that version may run on it."""
    present = migrations.migrations()
    newer = present[-1][0] + 1
    path = put_database(settings.data_dir / "gateway.db")
    with contextlib.closing(sqlite3.connect(path)) as db:
        version = db.execute("PRAGMA user_version").fetchone()
        monkeypatch.setattr(
            migrations, "migrations", lambda: [*present, (newer, "CREATE TABLE added (id)")]
        )
        result = run(*words)
        assert (result.exit_code, "older version" in result.output) == (1, True)
        assert db.execute("PRAGMA user_version").fetchone() == version


def test_a_file_that_is_no_database_gets_one_sentence(run, settings, tmp_path):
    (tmp_path / "gateway.db").write_bytes(b"nonsense" * 1000)
    result = run("refunds", "list", GATEWAY_DATA_DIR=str(tmp_path))
    assert (result.exit_code, "cannot be opened" in result.output) == (1, True), result.exception
