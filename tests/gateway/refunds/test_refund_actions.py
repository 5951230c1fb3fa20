"""An operator's decisions on refunds:

checked against the displayed state, recorded, executed once.
"""

import asyncio

import attrs
import pytest

from gateway.domain import Decision, PaymentState
from gateway.errors import ActionRefused, NeedsFresh, RefundRefused, StaleForm, WrongValue
from gateway.payments.refunds import RefundTiming
from gateway.running.core_parts import GasRecords
from gateway_operator.actions.refunds import (
    RefundChoice,
    approve,
    choice_of,
    preview_approval,
    reject,
    retry,
    take_back,
)
from gateway_operator.audit_log import Actor
from gateway_operator.state import Operator
from tests.conftest import Payer, running
from tests.gateway.refunds.conftest import fail_directly, fail_once
from tests.waits import Waits, started_with

ACTOR = Actor(door="page", name="s1", address="192.0.2.1")
OTHER = "0x" + "ab" * 20


@pytest.fixture
async def gateway(settings, provider, chain, clock):
    """A gateway that sweeps refunds only on demand."""
    with started_with(Waits(refunds=RefundTiming(sweep_s=3600.0))):
        async with running(settings, provider, now=clock) as started:
            yield started


@pytest.fixture
def desk(gateway):
    return gateway.services.find(Operator).desk


@pytest.fixture
async def owed(gateway, payer, provider, desk) -> RefundChoice:
    task = await fail_once(gateway, payer, provider)
    return await seen(desk, task["taskId"])


async def seen(desk, task_id) -> RefundChoice:
    return choice_of(await desk.store.refunds.case(task_id))


async def state(desk, choice) -> tuple:
    case = await desk.store.refunds.case(choice.task_id)
    return case.payment.state, case.decision


async def log(desk) -> list[tuple]:
    return [(one.action, one.subject) for one in await desk.records.actions(None, 50)]


UNDECIDED = (PaymentState.REFUND_DUE, None)
APPROVED = (PaymentState.REFUND_DUE, Decision.APPROVED)


async def test_an_approval_is_written_down_and_sent(gateway, desk, owed, payer, chain):
    (case,) = await approve(desk, ACTOR, [owed], reason="our mistake")
    assert (case.decision, case.note) == (Decision.APPROVED, "our mistake")
    (action,) = await desk.records.actions(None, 10)
    assert (action.action, action.subject, action.reason) == (
        "refund.approve",
        owed.task_id,
        "our mistake",
    )
    assert action.actor == ACTOR
    assert action.after["amountUnits"] == 20_000
    for _ in range(2):
        await gateway.services.refunds.sweep()
    assert (await state(desk, owed))[0] is PaymentState.REFUNDED
    assert chain.usdc_balance(payer.account.address) == 100_000_000


@pytest.mark.parametrize("change", [{"amount_units": 20_001}, {"recipient": OTHER}])
async def test_a_form_that_shows_another_amount_or_recipient_decides_nothing(desk, owed, change):
    with pytest.raises(StaleForm, match="Nothing was decided") as refused:
        await approve(desk, ACTOR, [attrs.evolve(owed, **change)])
    assert refused.value.status == 409
    assert await state(desk, owed) == UNDECIDED
    assert await log(desk) == []


async def test_of_several_refunds_all_are_approved_or_none(gateway, desk, owed, provider, chain):
    task = await fail_once(gateway, Payer(chain), provider)
    other = await seen(desk, task["taskId"])
    with pytest.raises(StaleForm):
        await approve(desk, ACTOR, [owed, attrs.evolve(other, amount_units=1)])
    assert await state(desk, owed) == UNDECIDED
    assert await log(desk) == []
    await approve(desk, ACTOR, [owed, other])
    assert [await state(desk, one) for one in (owed, other)] == [APPROVED] * 2
    subjects = {subject for _, subject in await log(desk)}
    assert subjects == {owed.task_id, other.task_id}


async def test_a_repeated_request_decides_once(gateway, desk, owed):
    actor = attrs.evolve(ACTOR, request="page s1 r1")
    for _ in range(2):
        (case,) = await approve(desk, actor, [owed])
        assert case.decision is Decision.APPROVED
    assert len(await log(desk)) == 1
    with pytest.raises(ActionRefused, match="another action"):
        await reject(desk, actor, [owed.task_id], reason="x")


async def test_page_and_shell_at_once_pay_once(gateway, desk, owed, payer, chain):
    shell = Actor(door="cli", name="paul")
    await asyncio.gather(approve(desk, ACTOR, [owed]), approve(desk, shell, [owed]))
    for _ in range(3):
        await gateway.services.refunds.sweep()
    assert chain.usdc_balance(payer.account.address) == 100_000_000


async def test_another_recipient_needs_a_reason_and_a_fresh_password(gateway, desk, owed, chain):
    with pytest.raises(WrongValue, match="reason"):
        await approve(desk, ACTOR, [owed], to=OTHER, is_fresh=True)
    with pytest.raises(NeedsFresh):
        await approve(desk, ACTOR, [owed], to=OTHER, reason="lost key")
    assert await state(desk, owed) == UNDECIDED
    await approve(desk, ACTOR, [owed], to=OTHER, reason="lost key", is_fresh=True)
    for _ in range(2):
        await gateway.services.refunds.sweep()
    assert chain.usdc_balance(OTHER) == 20_000


@pytest.mark.parametrize(
    ("to", "why"),
    [
        ("0x12", "40 hexadecimal"),
        ("0x" + "0" * 40, "zero address"),
        ("wallet", "own wallet"),
        ("token", "contract of USDC"),
        ("refund key", "refund key"),
        ("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02914", "EIP-55"),
    ],
)
async def test_an_address_that_would_lose_the_money_is_refused(desk, owed, to, why):
    named = {
        "wallet": desk.settings.wallet,
        "token": desk.settings.chain.token,
        "refund key": desk.sender().address,
    }
    with pytest.raises(WrongValue, match=why):
        await approve(desk, ACTOR, [owed], to=named.get(to, to), reason="x", is_fresh=True)
    assert await state(desk, owed) == UNDECIDED


async def test_past_the_daily_cap_a_fresh_password_is_needed(gateway, desk, owed):
    settings = attrs.evolve(desk.settings, refund_daily_cap="0.01")
    small = attrs.evolve(desk, settings=settings)
    assert (await preview_approval(small, [owed.task_id])).needs_fresh
    with pytest.raises(NeedsFresh, match="daily cap"):
        await approve(small, ACTOR, [owed])
    await approve(small, ACTOR, [owed], is_fresh=True)
    assert await state(desk, owed) == APPROVED


async def test_a_payer_who_proved_nothing_must_be_accepted(gateway, desk, payer, provider):
    task = await fail_directly(gateway, payer, provider)
    choice = await seen(desk, task["taskId"])
    assert [case.task_id for case in (await preview_approval(desk, [choice.task_id])).unproven] == [
        choice.task_id
    ]
    with pytest.raises(ActionRefused, match="signed nothing"):
        await approve(desk, ACTOR, [choice])
    await approve(desk, ACTOR, [choice], accepts_unproven=True)
    assert await state(desk, choice) == APPROVED


async def test_the_preview_says_what_the_key_holds_and_answers_without_the_chain(
    gateway, desk, owed, chain
):
    shown = await preview_approval(desk, [owed.task_id])
    assert (shown.sum_units, shown.holds_units) == (20_000, 1_000_000)
    assert not shown.needs_fresh
    without_key = attrs.evolve(desk, refunds=None)
    assert (await preview_approval(without_key, [owed.task_id])).holds_units is None


async def test_a_rejection_needs_a_reason_and_an_approval_takes_it_back(desk, owed):
    with pytest.raises(WrongValue, match="reason"):
        await reject(desk, ACTOR, [owed.task_id], reason=" ")
    await reject(desk, ACTOR, [owed.task_id], reason="abuse")
    assert await state(desk, owed) == (PaymentState.REFUND_FAILED, Decision.REJECTED)
    with pytest.raises(RefundRefused, match="not failed"):
        await retry(desk, ACTOR, owed)
    await approve(desk, ACTOR, [await seen(desk, owed.task_id)])
    assert await state(desk, owed) == APPROVED
    assert [name for name, _ in await log(desk)] == ["refund.approve", "refund.reject"]


async def test_an_approval_is_taken_back_until_it_is_signed(gateway, desk, owed, payer, chain):
    await approve(desk, ACTOR, [owed])
    (case,) = await take_back(desk, ACTOR, owed.task_id)
    assert case.decision is None
    for _ in range(2):
        await gateway.services.refunds.sweep()
    assert await state(desk, owed) == UNDECIDED
    await approve(desk, ACTOR, [owed])
    await gateway.services.refunds.sweep()
    with pytest.raises(RefundRefused, match="no approval to take back"):
        await take_back(desk, ACTOR, owed.task_id)


async def test_an_approval_that_is_taken_back_in_the_middle_of_a_sweep_sends_nothing(
    gateway, desk, owed, payer, chain, monkeypatch
):
    await approve(desk, ACTOR, [owed])
    refunds = gateway.services.refunds
    problem_of = refunds.problem_of

    async def take_back_meanwhile(case):
        problem = await problem_of(case)
        await take_back(desk, ACTOR, owed.task_id)
        return problem

    monkeypatch.setattr(refunds, "problem_of", take_back_meanwhile)
    await refunds.sweep()
    assert await state(desk, owed) == UNDECIDED
    assert chain.usdc_balance(payer.account.address) == 100_000_000 - 20_000


async def test_under_automatic_refunds_an_approval_is_rejected_instead(desk, owed):
    await approve(desk, ACTOR, [owed])
    automatic = attrs.evolve(desk, settings=attrs.evolve(desk.settings, refunds="automatic"))
    with pytest.raises(RefundRefused, match="reject it instead"):
        await take_back(automatic, ACTOR, owed.task_id)


async def test_a_rejected_refund_to_another_address_wants_the_password_again(desk, owed):
    """The password covered that address, which an approval without one would pay."""
    await approve(desk, ACTOR, [owed], to=OTHER, reason="lost key", is_fresh=True)
    case = await desk.store.refunds.case(owed.task_id)
    await desk.store.refunds.begin(
        case.payment.id,
        None,
        sender=desk.sender().address,
        recipient=OTHER,
        search_from_block=1,
        cap_units=None,
        now=1.0,
    )
    await desk.store.refunds.fail(case.payment.id, "The token refuses it.", now=2.0)
    await reject(desk, ACTOR, [owed.task_id], reason="not this address")
    again = await seen(desk, owed.task_id)
    assert again.recipient == OTHER
    with pytest.raises(NeedsFresh, match="another address"):
        await approve(desk, ACTOR, [again])
    assert await state(desk, owed) == (PaymentState.REFUND_FAILED, Decision.REJECTED)


async def test_a_refund_that_failed_is_retried(gateway, desk, owed):
    await approve(desk, ACTOR, [owed])
    case = await desk.store.refunds.case(owed.task_id)
    await desk.store.refunds.begin(
        case.payment.id,
        None,
        sender=desk.sender().address,
        recipient=owed.recipient,
        search_from_block=1,
        cap_units=None,
        now=1.0,
    )
    await desk.store.refunds.fail(case.payment.id, "The token refuses it.", now=2.0)
    with pytest.raises(StaleForm):
        await retry(desk, ACTOR, attrs.evolve(owed, amount_units=1))
    await retry(desk, ACTOR, owed, reason="topped up")
    for _ in range(2):
        await gateway.services.refunds.sweep()
    assert (await state(desk, owed))[0] is PaymentState.REFUNDED
    assert [name for name, _ in await log(desk)] == ["refund.retry", "refund.approve"]


async def test_a_page_decides_about_fifty_refunds_at_most(desk, owed):
    many = [attrs.evolve(owed, task_id=str(number)) for number in range(51)]
    with pytest.raises(WrongValue, match="At most 50"):
        await approve(desk, ACTOR, many)
    with pytest.raises(WrongValue, match="at least one"):
        await approve(desk, ACTOR, [])


async def test_the_gas_of_a_refund_is_found_in_the_background(gateway, desk, owed):
    await approve(desk, ACTOR, [owed])
    for _ in range(3):
        await gateway.services.refunds.sweep()
    await GasRecords(desk.store, desk.chain).complete()

    def read(db):
        sql = "SELECT gas_wei, mined_at FROM sent_transactions WHERE signer = ?"
        return tuple(db.execute(sql, (desk.sender().address,)).fetchone())

    gas_wei, mined_at = await desk.store.sum(read)
    assert gas_wei > 0
    assert mined_at > 0


async def test_approvals_at_once_are_bounded_by_the_daily_cap_together(
    gateway, desk, owed, provider, chain
):
    task = await fail_once(gateway, Payer(chain), provider)
    other = await seen(desk, task["taskId"])
    small = attrs.evolve(desk, settings=attrs.evolve(desk.settings, refund_daily_cap="0.03"))
    ends = await asyncio.gather(
        *(approve(small, ACTOR, [one]) for one in (owed, other)), return_exceptions=True
    )
    assert sum(isinstance(end, NeedsFresh) for end in ends) == 1
    assert len(await log(desk)) == 1


@pytest.mark.parametrize("undo", ["take back", "reject"])
async def test_another_recipient_goes_with_the_approval_that_named_it(desk, owed, undo):
    await approve(desk, ACTOR, [owed], to=OTHER, reason="lost key", is_fresh=True)
    if undo == "take back":
        await take_back(desk, ACTOR, owed.task_id)
    else:
        await reject(desk, ACTOR, [owed.task_id], reason="x")
    assert (await seen(desk, owed.task_id)).recipient == owed.recipient


async def test_a_form_that_shows_no_rejection_takes_none_back(gateway, desk, owed):
    await reject(desk, ACTOR, [owed.task_id], reason="abuse")
    with pytest.raises(StaleForm, match="rejected meanwhile"):
        await approve(desk, ACTOR, [owed])
    assert await log(desk) == [("refund.reject", owed.task_id)]
