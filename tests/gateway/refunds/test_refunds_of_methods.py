"""Refunds of payments by a method: without a proven address, an operator names the recipient."""

import asyncio
import json

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.domain import NO_ADDRESS, PaymentState
from gateway.errors import RefundRefused, WrongValue
from gateway.payments.refunds import RefundTiming
from gateway_operator.actions.refunds import approve, choice_of, reject, take_back
from gateway_operator.audit_log import Actor
from gateway_operator.state import Operator
from tests.conftest import running
from tests.gateway.refunds.conftest import environment
from tests.gateway.refunds.test_refund_page import list_of, question
from tests.operator_history import add_method_sale
from tests.plugins.gateway_operator.app.operator import log_in, post, text_of
from tests.waits import Waits, started_with

SHELL = Actor(door="cli", name="anna")
NAMED = "0x" + "d4" * 20
OTHER = "0x" + "ab" * 20


@pytest.fixture
async def gateway(automatic, provider, chain, clock):
    """A gateway that pays refunds automatically, whenever it sweeps on demand."""
    with started_with(Waits(refunds=RefundTiming(sweep_s=3600.0))):
        async with running(automatic, provider, now=clock) as started:
            await log_in(started)
            yield started


@pytest.fixture
def desk(gateway):
    return gateway.services.find(Operator).desk


async def owe(gateway, **changes) -> str:
    """Insert a sale by a voucher of 0.05 USDC whose task failed; return the task's id."""
    store, now = gateway.services.store, gateway.services.find(Operator).desk.now()
    changes = {"at": now, "state": PaymentState.REFUND_DUE} | changes
    return await store._write(lambda db: add_method_sale(db, **changes))


async def case_of(gateway, task_id):
    return await gateway.services.store.refunds.case(task_id)


async def sweep(gateway) -> None:
    for _ in range(3):
        await gateway.services.refunds.sweep()


async def test_automatic_refunds_leave_it_and_say_so(gateway, chain):
    unnamed, named = await owe(gateway), await owe(gateway, serial="serial-2", refund_to=NAMED)
    await sweep(gateway)
    for task_id in (unnamed, named):
        case = await case_of(gateway, task_id)
        assert (case.payment.state, case.sender) == (PaymentState.REFUND_DUE, None)
    assert chain.usdc_balance(NAMED) == 0
    text = await list_of(gateway, "undecided")
    assert "no address yet Voucher serial-1 , voucher" in text
    assert "the proof names no address; never sent automatically" in text
    assert (
        "Voucher serial-2 , voucher the proof names this address; never sent automatically" in text
    )
    assert NO_ADDRESS[:6] not in text


async def test_without_an_address_the_operator_names_one_and_gets_the_whole_value_there(
    gateway, desk, chain
):
    task_id = await owe(gateway)
    page = await (await gateway.client.get("/admin/refunds")).get_data(as_text=True)
    assert f'value="redirect:{task_id}"' in page
    assert f'value="approve:{task_id}"' not in page
    assert page.index(f'value="redirect:{task_id}"') < page.index(f'value="reject:{task_id}"')
    page, fields = await question(gateway, f"redirect:{task_id}")
    assert "picture for Voucher serial-1, paid by voucher" in page
    assert 'name="sure"' not in page
    answer = await post(
        gateway, "/admin/refunds/approve", to=OTHER, last="abab", reason="by mail", **fields
    )
    assert answer.status_code == 303
    await sweep(gateway)
    assert (await case_of(gateway, task_id)).payment.state is PaymentState.REFUNDED
    assert chain.usdc_balance(OTHER) == 50_000
    assert "an operator named this address" in await list_of(gateway, "paid")


async def test_no_approval_reaches_nobody(gateway, desk):
    task_id = await owe(gateway)
    choice = choice_of(await case_of(gateway, task_id))
    with pytest.raises(RefundRefused, match=f"approve {task_id} --to ADDRESS"):
        await approve(desk, SHELL, [choice], is_fresh=True, accepts_unproven=True)
    answer = await gateway.client.post(
        "/admin/refunds/ask",
        form={"do": "approve", "task": task_id},
        headers={"Sec-Fetch-Site": "same-origin"},
    )
    assert answer.status_code == 400
    assert "No address is known for 1 refund." in await text_of(answer)
    assert (await case_of(gateway, task_id)).decision is None


async def test_two_without_an_address_are_not_one_buyer(gateway, desk):
    cases = [await owe(gateway), await owe(gateway, serial="serial-2")]
    choices = [choice_of(await case_of(gateway, one)) for one in cases]
    page = Actor(door="page", name="s1", address="192.0.2.1")
    with pytest.raises(WrongValue, match="of one payer"):
        await approve(desk, page, choices, to=OTHER, reason="both", is_fresh=True)


async def test_an_address_that_the_proof_names_is_paid_once_it_is_accepted(gateway, desk, chain):
    checksummed = "0xD4D4D4D4D4D4D4D4D4D4D4D4D4D4D4D4D4D4D4D4"
    task_id = await owe(gateway, refund_to=checksummed)
    page, fields = await question(gateway, f"approve:{task_id}")
    assert "was paid by voucher" in page
    assert "plain transfer" not in page
    answer = await post(gateway, "/admin/refunds/approve", **fields)
    assert answer.status_code == 409
    assert "paid by voucher, which proves no address" in await text_of(answer)
    answer = await post(gateway, "/admin/refunds/approve", sure="yes", **fields)
    assert answer.status_code == 303
    await sweep(gateway)
    assert chain.usdc_balance(NAMED) == 50_000


async def test_a_proof_that_names_the_gateways_own_wallet_is_not_paid_there(gateway, desk):
    task_id = await owe(gateway, refund_to=desk.settings.wallet_key)
    choice = choice_of(await case_of(gateway, task_id))
    with pytest.raises(WrongValue, match="the gateway's own wallet"):
        await approve(desk, SHELL, [choice], accepts_unproven=True)


@pytest.mark.parametrize("named", [NAMED, None])
@pytest.mark.parametrize("undo", [take_back, reject])
async def test_with_a_decision_goes_the_operators_address_and_the_proofs_comes_back(
    gateway, desk, undo, named
):
    task_id = await owe(gateway, refund_to=named)
    choice = choice_of(await case_of(gateway, task_id))
    await approve(
        desk, SHELL, [choice], to=OTHER, reason="by mail", accepts_unproven=True, is_fresh=True
    )
    await undo(desk, SHELL, task_id if undo is take_back else [task_id], reason="a mistake")
    assert (await case_of(gateway, task_id)).recipient == (named or NO_ADDRESS)


def test_on_the_command_line_all_means_those_with_an_address(settings, provider, clock, chain):
    async def history() -> str:
        async with running(settings, provider, now=clock) as gateway:
            unnamed = await owe(gateway)
            await owe(gateway, serial="serial-2", refund_to=NAMED)
            return unnamed

    def run(*words):
        return CliRunner().invoke(main, ["refunds", *words], env=environment(settings))

    unnamed = asyncio.run(history())
    first, second = json.loads(run("list", "--json").stdout)
    assert (first["to"], second["to"]) == ("", NAMED)
    assert "its proof names no address: approve it with --to ADDRESS" in first["problem"]
    assert "it is never sent automatically: approve it" in second["problem"]
    assert "No address is known" in run("pay", unnamed).output
    done = run("approve", "--all")
    assert done.stdout == "Approved: 1.\n"
    assert f"Use `gateway refunds approve {unnamed} --to ADDRESS`." in done.stderr
    assert run("approve", unnamed, "--to", OTHER, "--note", "by mail").exit_code == 0
    assert {row["state"] for row in json.loads(run("pay", "--json").stdout)} == {"refunded"}
    assert chain.usdc_balance(NAMED) == chain.usdc_balance(OTHER) == 50_000
