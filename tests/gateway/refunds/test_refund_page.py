"""The page of refunds: who is due how much, and decisions that need a confirmation."""

import asyncio
import re
from html import unescape
from urllib.parse import urlencode

import attrs
import pytest

from gateway.domain import Decision, PaymentState
from gateway.errors import ChainUnavailable
from gateway.payments.refunds import RefundTiming
from gateway_operator.actions.refunds import approve, choice_of
from gateway_operator.audit_log import Actor
from gateway_operator.desk.refunds_list import read_refunds
from gateway_operator.sql.records import OperatorRecords
from gateway_operator.state import Operator
from tests.conftest import Payer, running
from tests.gateway.refunds.conftest import fail_directly, fail_once
from tests.plugins.gateway_operator.app.operator import SAME, actions_of, log_in, post, text_of
from tests.waits import Waits, started_with

OTHER = "0x" + "ab" * 20
SHELL = Actor(door="cli", name="anna")


@pytest.fixture
async def gateway(settings, provider, chain, clock):
    """A gateway that sweeps refunds only on demand, with the operator logged in."""
    with started_with(Waits(refunds=RefundTiming(sweep_s=3600.0))):
        async with running(settings, provider, now=clock) as started:
            started.chain = chain
            await started.services.payments.cutoff_block()
            await log_in(started)
            yield started


async def ask(gateway, do: str, *task_ids: str):
    """Send the form of the list with some refunds selected."""
    return await gateway.client.post(
        "/admin/refunds/ask",
        data=urlencode([("do", do), *(("task", one) for one in task_ids)]),
        headers=SAME | {"Content-Type": "application/x-www-form-urlencoded"},
    )


async def question(gateway, do: str, *task_ids: str) -> tuple[str, dict[str, str]]:
    """Return the confirmation dialog of a decision, and the hidden fields of its form."""
    answer = await ask(gateway, do, *task_ids)
    page = await answer.get_data(as_text=True)
    assert answer.status_code == 200, page
    return page, fields_of(page)


def fields_of(page: str) -> dict[str, str]:
    found = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', page)
    return {name: unescape(value) for name, value in found}


async def case_of(gateway, task):
    return await gateway.services.store.refunds.case(task["taskId"])


async def decision_of(gateway, task):
    case = await case_of(gateway, task)
    return case.payment.state, case.decision


async def list_of(gateway, state: str) -> str:
    answer = await gateway.client.get(f"/admin/refunds?state={state}")
    assert answer.status_code == 200
    return await text_of(answer)


async def test_a_failed_sale_waits_with_its_payer_amount_and_reason(gateway, payer, provider):
    task = await fail_once(gateway, payer, provider)
    text = await list_of(gateway, "undecided")
    assert payer.account.address.lower()[:6] in text
    assert "proven payer, x402" in text
    assert "picture" in text
    assert "No boats." in text
    # The amount due; the key's balance (1 USDC).
    assert "Owed 0.02 USDC" in text
    assert "The refund key holds 1.00 USDC" in text
    page = await (await gateway.client.get("/admin/refunds")).get_data(as_text=True)
    assert f'value="approve:{task["taskId"][:18]}"' in page


async def test_the_page_says_that_a_direct_payer_proved_nothing(gateway, payer, provider):
    await fail_directly(gateway, payer, provider)
    assert "payer not proven, direct" in await list_of(gateway, "undecided")


async def test_several_are_approved_by_one_question_that_names_each(
    gateway, chain, payer, provider
):
    other = Payer(chain)
    tasks = [await fail_once(gateway, one, provider) for one in (payer, payer, other)]
    page, fields = await question(gateway, "approve", *(task["taskId"] for task in tasks))
    assert "Give back 0.06 USDC to 2 payers" in page
    assert "The refund key holds" in page
    for one in (payer, other):
        assert one.account.address.lower() in page
    answer = await post(gateway, "/admin/refunds/approve", reason="our fault", **fields)
    assert answer.status_code == 303
    for task in tasks:
        case = await case_of(gateway, task)
        assert (case.decision, case.note) == (Decision.APPROVED, "our fault")
    rows = await actions_of(gateway, "refund.approve")
    assert {row.subject for row in rows} == {task["taskId"] for task in tasks}
    assert {row.actor.door for row in rows} == {"page"}
    assert "Take back" in await list_of(gateway, "moving")
    assert "Nothing to decide" in await list_of(gateway, "undecided")


async def test_a_double_click_approves_once(gateway, payer, provider):
    task = await fail_once(gateway, payer, provider)
    _, fields = await question(gateway, f"approve:{task['taskId']}")
    answers = await asyncio.gather(
        *(post(gateway, "/admin/refunds/approve", **fields) for _ in range(2))
    )
    assert [answer.status_code for answer in answers] == [303, 303]
    assert len(await actions_of(gateway, "refund.approve")) == 1


async def test_approved_on_the_page_and_on_the_command_line_at_once_it_is_paid_once(
    gateway, chain, payer, provider
):
    task = await fail_once(gateway, payer, provider)
    _, fields = await question(gateway, f"approve:{task['taskId']}")
    choice = choice_of(await case_of(gateway, task))
    before = chain.usdc_balance(payer.account.address)
    await asyncio.gather(
        post(gateway, "/admin/refunds/approve", **fields),
        approve(gateway.services.find(Operator).desk, SHELL, [choice]),
    )
    for _ in range(3):
        await gateway.services.refunds.sweep()
    assert (await decision_of(gateway, task))[0] is PaymentState.REFUNDED
    assert chain.usdc_balance(payer.account.address) == before + 20_000


async def test_a_form_that_has_gone_stale_says_what_changed_and_decides_nothing(
    gateway, payer, provider
):
    task = await fail_once(gateway, payer, provider)
    _, fields = await question(gateway, f"approve:{task['taskId']}")
    choice = choice_of(await case_of(gateway, task))
    await approve(
        gateway.services.find(Operator).desk,
        SHELL,
        [choice],
        to=OTHER,
        reason="asked for",
        is_fresh=True,
    )
    answer = await post(gateway, "/admin/refunds/approve", **fields)
    assert answer.status_code == 409
    text = await text_of(answer)
    assert f"0.02 USDC to {OTHER} now" in text
    assert len(await actions_of(gateway, "refund.approve")) == 1


@pytest.mark.parametrize("path", ["approve", "reject", "retry", "take-back", "ask"])
async def test_no_decision_without_a_session_or_from_a_foreign_page(gateway, payer, provider, path):
    task = await fail_once(gateway, payer, provider)
    _, fields = await question(gateway, f"approve:{task['taskId']}")
    fields |= {"reason": "x", "do": f"approve:{task['taskId']}"}
    stranger = gateway.app.test_client()
    answer = await stranger.post(f"/admin/refunds/{path}", form=fields, headers=SAME)
    assert answer.status_code == 401
    answer = await gateway.client.post(
        f"/admin/refunds/{path}", form=fields, headers={"Origin": "https://evil.example"}
    )
    assert answer.status_code == 403
    assert await decision_of(gateway, task) == (PaymentState.REFUND_DUE, None)
    rows = await OperatorRecords(gateway.services.store).actions(None, 50)
    assert not [row for row in rows if row.action.startswith("refund.")]


async def test_a_rejection_wants_a_reason_and_can_be_taken_back(gateway, payer, provider):
    task = await fail_once(gateway, payer, provider)
    _, fields = await question(gateway, f"reject:{task['taskId']}")
    assert (await post(gateway, "/admin/refunds/reject", reason=" ", **fields)).status_code == 400
    assert await decision_of(gateway, task) == (PaymentState.REFUND_DUE, None)
    answer = await post(gateway, "/admin/refunds/reject", reason="the result was right", **fields)
    assert answer.status_code == 303
    text = await list_of(gateway, "rejected")
    assert "the result was right" in text
    assert "Approve" in text
    _, fields = await question(gateway, f"approve:{task['taskId']}")
    assert (await post(gateway, "/admin/refunds/approve", **fields)).status_code == 303


async def test_an_approval_is_taken_back_until_it_is_signed(gateway, payer, provider):
    task = await fail_once(gateway, payer, provider)
    _, fields = await question(gateway, f"approve:{task['taskId']}")
    await post(gateway, "/admin/refunds/approve", **fields)
    _, fields = await question(gateway, f"take-back:{task['taskId']}")
    assert (await post(gateway, "/admin/refunds/take-back", **fields)).status_code == 303
    assert await decision_of(gateway, task) == (PaymentState.REFUND_DUE, None)
    await approve(
        gateway.services.find(Operator).desk, SHELL, [choice_of(await case_of(gateway, task))]
    )
    for _ in range(2):
        await gateway.services.refunds.sweep()
    answer = await post(gateway, "/admin/refunds/take-back", **fields | {"request": "another"})
    assert answer.status_code == 409


async def test_an_unproven_payer_is_paid_only_with_the_tick(gateway, payer, provider):
    task = await fail_directly(gateway, payer, provider)
    page, fields = await question(gateway, f"approve:{task['taskId']}")
    assert "proved nothing" in page
    assert 'name="sure"' in page
    assert (await post(gateway, "/admin/refunds/approve", **fields)).status_code == 409
    answer = await post(gateway, "/admin/refunds/approve", sure="yes", **fields)
    assert answer.status_code == 303


async def test_another_recipient_needs_its_last_characters_a_reason_and_the_password(
    gateway, clock, payer, provider
):
    task = await fail_once(gateway, payer, provider)
    clock.offset_s += 700
    page, fields = await question(gateway, f"redirect:{task['taskId']}")
    assert 'name="password"' in page
    fields |= {"to": OTHER, "reason": "the payer is an exchange"}
    assert (await post(gateway, "/admin/refunds/approve", last="abac", **fields)).status_code == 400
    assert (await post(gateway, "/admin/refunds/approve", last="abab", **fields)).status_code == 403
    assert await decision_of(gateway, task) == (PaymentState.REFUND_DUE, None)
    answer = await post(
        gateway, "/admin/refunds/approve", last="abab", password="correct horse", **fields
    )
    assert answer.status_code == 303
    assert (await case_of(gateway, task)).recipient == OTHER
    assert "not the payer" in await list_of(gateway, "moving")


async def test_past_the_daily_cap_the_question_asks_for_the_password(
    settings, provider, chain, clock, payer
):
    async with running(
        attrs.evolve(settings, refund_daily_cap="0.01"), provider, now=clock
    ) as gateway:
        await log_in(gateway)
        task = await fail_once(gateway, payer, provider)
        clock.offset_s += 700
        page, fields = await question(gateway, f"approve:{task['taskId']}")
        assert 'name="password"' in page
        assert (await post(gateway, "/admin/refunds/approve", **fields)).status_code == 403
        answer = await post(gateway, "/admin/refunds/approve", password="correct horse", **fields)
        assert answer.status_code == 303


async def test_a_page_decides_about_fifty_refunds_at_most(gateway):
    answer = await ask(gateway, "approve", *(f"task_{n}" for n in range(51)))
    assert answer.status_code == 400
    assert "1 to 50" in await text_of(answer)


async def test_the_page_answers_while_the_chain_is_silent(gateway, monkeypatch, payer, provider):
    await fail_once(gateway, payer, provider)

    async def silent(*_, **__):
        raise ChainUnavailable("The chain does not answer now.")

    monkeypatch.setattr(gateway.services.chain, "call_uint", silent)
    text = await list_of(gateway, "undecided")
    assert "The refund key holds unknown" in text
    assert "The chain does not answer now." in text
    assert "No boats." in text


async def test_what_the_key_held_is_told_with_its_age(gateway, clock, monkeypatch, payer, provider):
    await fail_once(gateway, payer, provider)
    await list_of(gateway, "undecided")

    async def silent(*_, **__):
        raise ChainUnavailable("The chain does not answer now.")

    monkeypatch.setattr(gateway.services.chain, "call_uint", silent)
    clock.offset_s += 120
    text = await list_of(gateway, "undecided")
    assert "The refund key holds 1.00 USDC" in text
    assert re.search(r"Value of \d\d:\d\d:\d\d ?, 2 min ago", text)


async def test_the_day_s_automatic_cap_shows_what_is_left(settings, provider, chain, payer):
    automatic = attrs.evolve(settings, refunds="automatic", refund_daily_cap="5")
    async with running(automatic, provider) as gateway:
        await log_in(gateway)
        await fail_once(gateway, payer, provider)
        for _ in range(3):
            await gateway.services.refunds.sweep()
        page = await read_refunds(gateway.services.find(Operator).desk, "paid")
        assert page.cap_left_units == 4_980_000
        assert "left of 5.00 in 24 hours" in await list_of(gateway, "paid")


async def test_words_of_a_vendor_stay_text(gateway, payer, provider):
    from gateway import ContentPolicy
    from tests.conftest import buy

    provider.script = [ContentPolicy("<script>alert(1)</script>")]
    answer = await buy(gateway, payer.header(), prompt='"><img src=x onerror=alert(2)>')
    task = await gateway.wait((await answer.get_json())["taskId"])
    for path in ("/admin/refunds", "/admin/tasks", f"/admin/tasks/{task['taskId']}"):
        page = await (await gateway.client.get(path)).get_data(as_text=True)
        assert "<script>alert" not in page
        assert "<img" not in page
        # Prompts are shown only after giving a reason.
        assert "onerror" not in page


async def test_an_approval_takes_back_a_rejection_only_where_the_page_showed_it(
    gateway, payer, provider
):
    task = await fail_once(gateway, payer, provider)
    _, stale = await question(gateway, f"approve:{task['taskId']}")
    _, rejection = await question(gateway, f"reject:{task['taskId']}")
    await post(gateway, "/admin/refunds/reject", reason="abuse", **rejection)
    answer = await post(gateway, "/admin/refunds/approve", **stale)
    assert answer.status_code == 409
    assert await decision_of(gateway, task) == (PaymentState.REFUND_FAILED, Decision.REJECTED)
    _, shown = await question(gateway, f"approve:{task['taskId']}")
    await post(gateway, "/admin/refunds/approve", **shown)
    assert await decision_of(gateway, task) == (PaymentState.REFUND_DUE, Decision.APPROVED)
