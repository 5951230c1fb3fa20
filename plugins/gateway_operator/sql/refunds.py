"""Decisions about refunds, run inside the write of `actions.act`."""

from collections.abc import Sequence

import attrs

from gateway.domain import Decision, PaymentState, RefundCase
from gateway.errors import NeedsFresh, RefundRefused, StaleForm
from gateway.store import refunds
from gateway.store.sql import Connection, locked
from gateway_operator.audit_log import NewAction
from gateway_operator.sql import actions

DAY_S = 86_400.0


@attrs.frozen(kw_only=True)
class Approval:
    """A refund as the operator saw it, and its recipient."""

    task_id: str
    amount_units: int
    recipient: str
    is_rejected: bool = False

    # Another address than the payer's, or None.
    to: str | None = None


# Guards the daily cap, and the amounts that the operator saw.
@locked("refunds")
def approve(
    db: Connection,
    approvals: Sequence[Approval],
    reason: str,
    now: float,
    more: Sequence[NewAction] = (),
    cap_units: int | None = None,
) -> list[RefundCase]:
    """Approve refunds, all or none; `more` are further audit rows.

    Raises `RefundRefused`, `StaleForm` if a refund has changed since the operator saw it, and
    `NeedsFresh` if approvals of the last 24 hours would exceed `cap_units`.
    """
    for action in more:
        actions.insert(db, action)
    for approval in approvals:
        check_seen(db, approval)
    decided = [
        refunds.decide(db, one.task_id, Decision.APPROVED, one.to, reason, now) for one in approvals
    ]
    # Inside the write, so that concurrent approvals share the cap.
    if cap_units is not None and approved_units(db, now - DAY_S) > cap_units:
        raise NeedsFresh("This gives back more than the daily cap: enter the password again.")
    return decided


def check_seen(db: Connection, approval: Approval) -> None:
    """Raise `StaleForm` if the refund has changed, `RefundRefused` if there is none."""
    case = refunds.find_case(db, approval.task_id)
    if (case.amount_units, case.recipient) != (approval.amount_units, approval.recipient):
        raise StaleForm(
            f"The refund of task {approval.task_id} is {case.amount_units / 10**6:g} USDC to "
            f"{case.recipient} now. Nothing was decided. Check it and try again."
        )
    if case.decision is Decision.REJECTED and not approval.is_rejected:
        raise StaleForm(
            f"The refund of task {approval.task_id} was rejected meanwhile. Nothing was decided. "
            "Check it and try again."
        )


@locked("refunds")
def reject(
    db: Connection,
    task_ids: Sequence[str],
    reason: str,
    now: float,
    more: Sequence[NewAction] = (),
) -> list[RefundCase]:
    """Reject refunds, all or none; `more` are further audit rows. Raises `RefundRefused`."""
    for action in more:
        actions.insert(db, action)
    return [
        refunds.decide(db, task_id, Decision.REJECTED, None, reason, now) for task_id in task_ids
    ]


@locked("refunds")
def retry(db: Connection, approval: Approval, reason: str, now: float) -> list[RefundCase]:
    """Let a failed refund be sent again, with the same nonce.

    Raises `RefundRefused` if it has not failed, and `StaleForm`.
    """
    case = refunds.find_case(db, approval.task_id)
    has_failed = case.payment.state is PaymentState.REFUND_FAILED
    if not has_failed or case.decision is Decision.REJECTED:
        raise RefundRefused(
            f"The refund of task {approval.task_id} has not failed, so there is nothing to retry."
        )
    return approve(db, [approval], reason, now)


@locked("refunds")
def take_back(db: Connection, task_id: str, now: float) -> list[RefundCase]:
    """Withdraw an approval whose refund is not signed yet; raises `RefundRefused`.

    A recipient that it named is removed too: the next approval pays the payer, or the address in
    the method's proof.
    """
    case = refunds.find_case(db, task_id)
    is_unsigned = case.payment.state is PaymentState.REFUND_DUE and case.sender is None
    if case.decision is not Decision.APPROVED or not is_unsigned:
        raise RefundRefused(
            f"The refund of task {task_id} has no approval to take back: it is "
            f"{case.payment.state}."
        )
    db.execute(
        """UPDATE refunds SET decision = NULL, note = NULL, problem = NULL, updated_at = ?,
               recipient = ? WHERE payment_id = ?""",
        (now, case.own_recipient, case.payment.id),
    )
    return [refunds.find_case(db, task_id)]


def approved_units(db: Connection, since: float) -> int:
    """Return the units that operators have refunded since then, or approved and not yet sent."""
    units: int = db.execute(
        """SELECT coalesce(sum(r.amount_units), 0) FROM refunds r
           JOIN payments p ON p.id = r.payment_id
           WHERE r.decision = 'approved' AND (r.begun_at > ? OR p.state = 'refund_due')""",
        (since,),
    ).fetchone()[0]
    return units
