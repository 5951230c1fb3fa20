"""An operator's decisions about refunds, as functions of the write connection of `act`."""

from collections.abc import Sequence

import attrs

from gateway.domain import Decision, PaymentState, RefundCase
from gateway.errors import NeedsFresh, RefundRefused, StaleForm
from gateway.store import refunds
from gateway.store.locks import locked
from gateway.store.sql import Connection
from gateway_operator.audit_log import NewAction
from gateway_operator.sql import actions

DAY_S = 86_400.0


@attrs.frozen(kw_only=True)
class Approval:
    """A refund as the operator saw it, and to whom it is to go."""

    task_id: str
    amount_units: int
    recipient: str
    is_rejected: bool = False

    # Another address than the payer's, or None.
    to: str | None = None


# The day's cap, and the sums that an approval was shown.
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

    Raises `RefundRefused`, `StaleForm` where one is not as the operator saw it, and `NeedsFresh`
    where more than `cap_units` would have been approved in 24 hours.
    """
    for action in more:
        actions.insert(db, action)
    for approval in approvals:
        check_seen(db, approval)
    decided = [
        refunds.decide(db, one.task_id, Decision.APPROVED, one.to, reason, now) for one in approvals
    ]
    # Within the write: approvals that are sent at the same time count for each other.
    if cap_units is not None and approved_units(db, now - DAY_S) > cap_units:
        raise NeedsFresh("This gives back more than the daily cap: enter the password again.")
    return decided


def check_seen(db: Connection, approval: Approval) -> None:
    """Raise `StaleForm` for a refund that is not as it was seen, `RefundRefused` without one."""
    case = refunds.find_case(db, approval.task_id)
    if (case.amount_units, case.recipient) != (approval.amount_units, approval.recipient):
        raise StaleForm(
            f"The refund of task {approval.task_id} is {case.amount_units / 10**6:g} USDC to "
            f"{case.recipient} now. Nothing was decided; look at it again."
        )
    if case.decision is Decision.REJECTED and not approval.is_rejected:
        raise StaleForm(
            f"The refund of task {approval.task_id} was rejected meanwhile. Nothing was decided; "
            "look at it again."
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
    """Let a refund that failed be sent again, with the same nonce.

    Raises `RefundRefused` where it did not fail, and `StaleForm`.
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
    """Take an approval back while nothing is signed; raises `RefundRefused`.

    With it goes another recipient that it named: the next approval pays the payer, or the
    address that the proof of a method names.
    """
    case = refunds.find_case(db, task_id)
    is_unsigned = case.payment.state is PaymentState.REFUND_DUE and case.sender is None
    if case.decision is not Decision.APPROVED or not is_unsigned:
        raise RefundRefused(
            f"The refund of task {task_id} has no approval that could be taken back: it is "
            f"{case.payment.state}."
        )
    db.execute(
        """UPDATE refunds SET decision = NULL, note = NULL, problem = NULL, updated_at = ?,
               recipient = ? WHERE payment_id = ?""",
        (now, case.own_recipient, case.payment.id),
    )
    return [refunds.find_case(db, task_id)]


def approved_units(db: Connection, since: float) -> int:
    """Return the units that operators gave back since then, or approved and nobody has sent yet."""
    units: int = db.execute(
        """SELECT coalesce(sum(r.amount_units), 0) FROM refunds r
           JOIN payments p ON p.id = r.payment_id
           WHERE r.decision = 'approved' AND (r.begun_at > ? OR p.state = 'refund_due')""",
        (since,),
    ).fetchone()[0]
    return units
