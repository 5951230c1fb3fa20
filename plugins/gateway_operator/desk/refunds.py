"""Refunds that are owed, and sending them. `actions.refunds` decides about them."""

import asyncio
import time
from collections.abc import Sequence

from gateway.domain import PaymentState, RefundCase
from gateway.errors import RefundRefused
from gateway.payments.refunds import missing_address
from gateway_operator.desk.desk import Desk

OPEN = (PaymentState.REFUND_DUE, PaymentState.REFUNDING, PaymentState.REFUND_FAILED)
DECIDABLE = (PaymentState.REFUND_DUE, PaymentState.REFUND_FAILED)
# Between two reads of refunds that were sent.
_POLL_S = 1.0


async def find_payable(desk: Desk, task_ids: Sequence[str]) -> list[RefundCase]:
    """Return these tasks' refunds; without tasks, all that are approved or being sent.

    Raises `RefundRefused` for a task without a refund.
    """
    if not task_ids:
        cases = await desk.store.refunds.cases(PaymentState.REFUND_DUE, PaymentState.REFUNDING)
        return [case for case in cases if desk.sender().may_send(case)]
    found = [await desk.store.refunds.case(task_id) for task_id in task_ids]
    for task_id, case in zip(task_ids, found, strict=True):
        if case is None:
            raise RefundRefused(f"Nothing is owed for task {task_id}.")
    return [case for case in found if case is not None]


async def preview_refunds(
    desk: Desk, cases: Sequence[RefundCase]
) -> list[tuple[RefundCase, str | None]]:
    """Return each refund with the problem that prevents sending it; sends nothing."""
    sender = desk.sender()
    return [(case, await sender.problem_of(case)) for case in cases]


async def pay_refunds(
    desk: Desk, cases: Sequence[RefundCase], *, wait_s: float
) -> list[RefundCase]:
    """Send refunds, and wait until each is on-chain or has a problem, at most `wait_s` seconds."""
    sender, ledger = desk.sender(), desk.store.refunds
    task_ids = [case.task_id for case in cases]
    deadline = time.monotonic() + wait_s
    while True:
        await sender.sweep(only=task_ids)
        shown = [case for task_id in task_ids if (case := await ledger.case(task_id))]
        if not any(_is_moving(case) for case in shown) or time.monotonic() > deadline:
            return shown
        await asyncio.sleep(_POLL_S)


def waiting_reason(case: RefundCase) -> str:
    """Return why a payment method's refund waits for the operator; empty if it does not."""
    if case.needs_address:
        return missing_address(case)
    is_undecided = case.payment.state is PaymentState.REFUND_DUE and case.decision is None
    if case.payment.method is None or not is_undecided:
        return ""
    return f"It was paid by {case.payment.method}, so it is never sent automatically: approve it."


def _is_moving(case: RefundCase) -> bool:
    """Whether it is being sent, or due without a problem."""
    state = case.payment.state
    is_due = state is PaymentState.REFUND_DUE and case.problem is None
    return is_due or state is PaymentState.REFUNDING
