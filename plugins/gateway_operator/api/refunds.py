"""Refunds: approve, reject, retry, take back."""

from typing import Any

from quart import Response

from gateway.domain import RefundCase
from gateway.errors import ValidationError
from gateway_operator.actions import refunds
from gateway_operator.actions.refunds import RefundChoice
from gateway_operator.api.frame import (
    API,
    answer,
    flag_of,
    read_body,
    text_of,
    whole_of,
)
from gateway_operator.desk.references import find_id
from gateway_operator.pages.frame import blueprint
from gateway_operator.pages.guards import actor, is_fresh, needs_scope
from gateway_operator.state import operator

_REFUND = f"{API}/refunds/<task_id>"
_SEEN = ("amountUnits", "recipient")


@blueprint.post(f"{_REFUND}/approve")
@needs_scope("act")
async def api_approve(task_id: str) -> Response:
    """Approve a refund with the amount and recipient that the caller saw."""
    names = (*_SEEN, "isRejected", "reason", "to", "acceptsUnproven")
    body = await read_body(*names, needed=_SEEN)
    cases = await refunds.approve(
        operator().desk,
        actor(),
        [_choice(await _find_id(task_id), body)],
        reason=text_of(body, "reason"),
        to=text_of(body, "to") or None,
        accepts_unproven=flag_of(body, "acceptsUnproven"),
        is_fresh=is_fresh(),
    )
    return _answer(cases)


@blueprint.post(f"{_REFUND}/reject")
@needs_scope("act")
async def api_reject(task_id: str) -> Response:
    """Reject a refund, with a reason."""
    body = await read_body("reason", needed=["reason"])
    reason = text_of(body, "reason")
    desk, found = operator().desk, await _find_id(task_id)
    return _answer(await refunds.reject(desk, actor(), [found], reason=reason))


@blueprint.post(f"{_REFUND}/retry")
@needs_scope("act")
async def api_retry(task_id: str) -> Response:
    """Send a failed refund again."""
    body = await read_body(*_SEEN, "reason", needed=_SEEN)
    choice, reason = _choice(await _find_id(task_id), body), text_of(body, "reason")
    return _answer(await refunds.retry(operator().desk, actor(), choice, reason=reason))


@blueprint.post(f"{_REFUND}/take-back")
@needs_scope("act")
async def api_take_back(task_id: str) -> Response:
    """Withdraw an approval that is not signed yet."""
    body = await read_body("reason")
    reason = text_of(body, "reason")
    desk, found = operator().desk, await _find_id(task_id)
    return _answer(await refunds.take_back(desk, actor(), found, reason=reason))


async def _find_id(task_id: str) -> str:
    return await find_id(operator().desk, task_id)


def _choice(task_id: str, body: dict[str, Any]) -> RefundChoice:
    units = whole_of(body, "amountUnits")
    if units is None:
        raise ValidationError("amountUnits is missing.")
    return RefundChoice(
        task_id=task_id,
        amount_units=units,
        recipient=text_of(body, "recipient"),
        is_rejected=flag_of(body, "isRejected"),
    )


def _answer(cases: list[RefundCase]) -> Response:
    return answer({"refunds": [row_of(case) for case in cases]})


def row_of(case: RefundCase) -> dict[str, Any]:
    """Return a refund as JSON."""
    return {
        "task": case.task_id,
        "amountUnits": case.amount_units,
        "recipient": case.recipient,
        "state": case.payment.state,
        "decision": case.decision,
        "why": case.reason,
        "problem": case.problem,
        "transaction": case.tx_hash,
    }
