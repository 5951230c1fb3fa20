"""`gateway payers`: who is barred from x402, and how the operator lifts the bar."""

import asyncio
import json
import time

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.contracts import SignedTransaction
from gateway.contracts.store import FailedSettlement
from gateway.settings import variable
from gateway.store import SqliteStore
from gateway_testing.facts import PAYER, WALLET, reserved

NAMES = ("base_url", "wallet", "data_dir", "settlement_key")


@pytest.fixture
def run(settings):
    variables = {variable(name): str(getattr(settings, name)) for name in NAMES}
    env = variables | {"GATEWAY_RPC_URLS": ",".join(settings.rpc_urls)}

    def command(*words):
        return CliRunner().invoke(main, list(words), env=env)

    return command


@pytest.fixture
def failed(settings) -> FailedSettlement:
    """A settlement that has just reverted."""

    async def fail() -> FailedSettlement:
        now = time.time()
        sent = SignedTransaction(
            signer=WALLET,
            nonce=0,
            tx_hash="0x" + "ab" * 32,
            raw=b"raw",
            max_fee_wei=10**9,
            max_priority_wei=1,
            sent_at=now,
        )
        failure = FailedSettlement(
            payer=PAYER, tx_hash=sent.tx_hash, at=now, failure="drained", fee_wei=2 * 10**12
        )
        async with SqliteStore(settings.data_dir / "gateway.db") as store:
            task = await reserved(store)
            await store.begin_settling(task.payment.id, sent, now=now)
            await store.payers.judge(sent, failure)
        return failure

    return asyncio.run(fail())


def test_a_barred_payer_is_listed_with_its_reason_and_its_cost(run, failed):
    result = run("payers", "barred", "--json")
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout)
    assert (row["payer"], row["why"], row["transaction"]) == (PAYER, "drained", failed.tx_hash)
    assert row["burned"] == "0.000002000 ETH"
    assert "drained" in run("payers", "barred").stdout


def test_a_lifted_payer_is_listed_no_more(run, failed):
    lifted = run("payers", "lift", PAYER.upper().replace("0X", "0x"), "--note", "spoke to them")
    assert lifted.exit_code == 0, lifted.output
    assert "may pay by x402 again" in lifted.stdout
    assert run("payers", "barred").stdout == "No payer is barred.\n"


def test_lifting_a_payer_that_is_not_barred_says_so(run, failed):
    result = run("payers", "lift", "0x" + "99" * 20, "--note", "who?")
    assert result.exit_code != 0
    assert "is not barred" in result.output


def test_an_address_that_is_none_is_refused(run, failed):
    result = run("payers", "lift", "0x12", "--note", "a typo")
    assert result.exit_code != 0
    assert "40 hexadecimal digits" in result.output


def test_lifting_is_written_down(run, failed):
    run("payers", "lift", PAYER, "--reason", "spoke to them")
    (row,) = json.loads(run("actions", "--json").stdout)
    assert (row["action"], row["subject"], row["reason"]) == ("payer.lift", PAYER, "spoke to them")
