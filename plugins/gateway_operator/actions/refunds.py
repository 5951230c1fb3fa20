"""Operators' decisions about refunds."""

import asyncio
import re
from collections.abc import Callable, Sequence, Sized
from typing import Any

import attrs

from gateway.domain import NO_ADDRESS, Decision, Flow, RefundCase, usdc
from gateway.domain.eip3009 import BALANCE_OF, checksum_address, word
from gateway.errors import (
    ActionRefused,
    ChainUnavailable,
    NeedsFresh,
    RefundRefused,
    WrongValue,
)
from gateway_operator.audit_log import Actor, AlreadyDone, NewAction
from gateway_operator.desk.desk import Desk
from gateway_operator.sql import actions
from gateway_operator.sql import refunds as writes
from gateway_operator.sql.refunds import Approval

# As many as a page shows.
_MAX_AT_ONCE = 50
# A page waits this long for the key's balance.
_HOLDS_S = 2.0
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")


@attrs.frozen(kw_only=True)
class RefundChoice:
    """A refund as the operator saw it. Forms send it back, so that changes are detected."""

    task_id: str
    amount_units: int
    recipient: str

    # An approval overrides only a rejection that was shown.
    is_rejected: bool = False


@attrs.frozen(kw_only=True)
class ApprovalPreview:
    """The effect of an approval, before it is confirmed."""

    cases: list[RefundCase]
    sum_units: int

    # None without a key, or if the chain does not respond.
    holds_units: int | None

    # Recipients not proven to be the buyer: of plain transfers, which anyone who saw them could
    # have used, and addresses named by a payment method's proof.
    unproven: list[RefundCase]

    needs_fresh: bool

    # Whether there is a key that could send them.
    has_key: bool = True


def choice_of(case: RefundCase) -> RefundChoice:
    """Return a refund's current state as a choice."""
    return RefundChoice(
        task_id=case.task_id,
        amount_units=case.amount_units,
        recipient=case.recipient,
        is_rejected=case.decision is Decision.REJECTED,
    )


async def preview_approval(
    desk: Desk, task_ids: Sequence[str], to: str | None = None
) -> ApprovalPreview:
    """Return the effect of approving these refunds without approving them.

    Raises `RefundRefused` for a task without a refund, and `WrongValue` for an invalid `to`.
    """
    if to is not None:
        check_recipient(desk, to)
    cases = [await _find_case(desk, task_id) for task_id in task_ids]
    sum_units = sum(case.amount_units for case in cases)
    return ApprovalPreview(
        cases=cases,
        sum_units=sum_units,
        holds_units=await _holds_units(desk),
        unproven=[case for case in cases if _is_unproven(case)],
        needs_fresh=_is_redirected(cases, to) or await _is_over_cap(desk, sum_units),
        has_key=desk.refunds is not None,
    )


async def approve(
    desk: Desk,
    actor: Actor,
    choices: Sequence[RefundChoice],
    *,
    reason: str = "",
    to: str | None = None,
    accepts_unproven: bool = False,
    is_fresh: bool = False,
) -> list[RefundCase]:
    """Approve refunds, all or none; the gateway's next sweep sends them.

    `to` replaces the payer, for refunds of one payer. Raises `WrongValue`, `StaleForm` if a refund
    has changed since the operator saw it, `RefundRefused`, also if no address is known,
    `NeedsFresh` for another recipient or above the daily cap, and `ActionRefused` for an unproven
    payer unless `accepts_unproven`.
    """
    _check_count(actor, choices)
    # A first request counts towards the daily cap, so recognize its repeat before checking.
    if await was_done(desk, actor, "refund.approve", choices[0].task_id):
        return [await _find_case(desk, choice.task_id) for choice in choices]
    recipient = _check_other_recipient(desk, actor, choices, to, reason)
    cases = [await _find_case(desk, choice.task_id) for choice in choices]
    if _is_redirected(cases, recipient) and not is_fresh:
        raise NeedsFresh(
            "This gives money to another address than the payer's: enter the password again."
        )
    if recipient is None:
        _check_named_by_proofs(desk, cases)
    if not accepts_unproven:
        _check_unproven(cases)
    rows = _approval_actions(desk, actor, choices, recipient, reason)
    approvals = [Approval(**attrs.asdict(one), to=recipient) for one in choices]
    cap_units = None if is_fresh else usdc(desk.settings.refund_daily_cap)
    return await _act(
        desk, writes.approve, approvals, reason, desk.now(), rows[1:], cap_units, action=rows[0]
    )


async def reject(
    desk: Desk, actor: Actor, task_ids: Sequence[str], *, reason: str
) -> list[RefundCase]:
    """Reject refunds, all or none; a later approval overrides the rejection.

    Raises `RefundRefused`, and `WrongValue` without a reason.
    """
    _check_count(actor, task_ids)
    _check_reason(reason)
    after = {"together": list(task_ids)}
    nameless = attrs.evolve(actor, request=None)
    rows = [
        _new_action(
            desk, actor if place == 0 else nameless, "refund.reject", task_id, reason, after
        )
        for place, task_id in enumerate(task_ids)
    ]
    return await _act(desk, writes.reject, task_ids, reason, desk.now(), rows[1:], action=rows[0])


async def retry(
    desk: Desk, actor: Actor, choice: RefundChoice, *, reason: str = ""
) -> list[RefundCase]:
    """Send a failed refund again with the same nonce, so that the token pays it at most once.

    Raises `RefundRefused` if it has not failed, and `StaleForm`.
    """
    action = _new_action(desk, actor, "refund.retry", choice.task_id, reason)
    approval = Approval(**attrs.asdict(choice))
    return await _act(desk, writes.retry, approval, reason, desk.now(), action=action)


async def take_back(
    desk: Desk, actor: Actor, task_id: str, *, reason: str = ""
) -> list[RefundCase]:
    """Withdraw an approval whose refund is not signed yet.

    Raises `RefundRefused` if it is signed, or if the settings would send it anyway.
    """
    case = await _find_case(desk, task_id)
    if desk.settings.refunds_automatically and case.payer_proven:
        raise RefundRefused(
            "Refunds are automatic here, so it would be sent anyway: reject it instead."
        )
    action = _new_action(desk, actor, "refund.take_back", task_id, reason)
    return await _act(desk, writes.take_back, task_id, desk.now(), action=action)


def check_recipient(desk: Desk, address: str) -> str:
    """Return another recipient in lower case.

    Raises `WrongValue` for an invalid address or checksum, or if the money would be lost.
    """
    if not _ADDRESS.fullmatch(address):
        raise WrongValue("An address is 0x followed by 40 hexadecimal digits.")
    digits, lower = address[2:], address.lower()
    if digits not in (digits.lower(), digits.upper()) and address != checksum_address(lower):
        raise WrongValue(
            "The capital letters of this address do not fit its digits (EIP-55), so a character "
            "of it is wrong: copy it again."
        )
    own = desk.refunds.address if desk.refunds is not None else None
    forbidden = {
        NO_ADDRESS: "the zero address",
        desk.settings.wallet_key: "the gateway's own wallet",
        desk.settings.chain.token.lower(): "the contract of USDC",
        **({own.lower(): "the refund key"} if own is not None else {}),
    }
    if lower in forbidden:
        raise WrongValue(f"This is {forbidden[lower]}: no buyer would get the money.")
    return lower


async def _act(
    desk: Desk, write: Callable[..., list[RefundCase]], *arguments: Any, action: NewAction
) -> list[RefundCase]:
    """Run a write with its audit row; a repeated request gets the refunds' current state."""
    try:
        return await desk.records.act(write, *arguments, action=action)
    except AlreadyDone as done:
        after = done.action.after
        together = after.get("together") if isinstance(after, dict) else None
        return [await _find_case(desk, one) for one in together or [done.action.subject]]


async def was_done(desk: Desk, actor: Actor, action: str, subject: str) -> bool:
    """Whether this is the repeat of a request that was carried out before."""
    if actor.request is None:
        return False
    found = await desk.store.read(actions.find_request, actor.request)
    return found is not None and (found.action, found.subject) == (action, subject)


def _new_action(
    desk: Desk, actor: Actor, action: str, task_id: str, reason: str, after: object = None
) -> NewAction:
    return NewAction(
        actor=actor, at=desk.now(), action=action, subject=task_id, reason=reason, after=after
    )


def _approval_actions(
    desk: Desk,
    actor: Actor,
    choices: Sequence[RefundChoice],
    recipient: str | None,
    reason: str,
) -> list[NewAction]:
    """Return an audit row per refund; only the first has the request key, which is unique."""
    together = [choice.task_id for choice in choices]
    nameless = attrs.evolve(actor, request=None)
    return [
        _new_action(
            desk,
            actor if place == 0 else nameless,
            "refund.approve",
            choice.task_id,
            reason,
            after={
                "amountUnits": choice.amount_units,
                "recipient": recipient or choice.recipient,
                "together": together,
            },
        )
        for place, choice in enumerate(choices)
    ]


async def _find_case(desk: Desk, task_id: str) -> RefundCase:
    case = await desk.store.refunds.case(task_id)
    if case is None:
        raise RefundRefused(f"Nothing is owed for task {task_id}.")
    return case


def _check_count(actor: Actor, chosen: Sized) -> None:
    if len(chosen) == 0:
        raise WrongValue("Name at least one refund.")
    if actor.door != "cli" and len(chosen) > _MAX_AT_ONCE:
        raise WrongValue(f"At most {_MAX_AT_ONCE} refunds are decided at once.")


def _check_reason(reason: str) -> None:
    if not reason.strip():
        raise WrongValue("Give a reason: only the audit log shows it.")


def _check_other_recipient(
    desk: Desk, actor: Actor, choices: Sequence[RefundChoice], to: str | None, reason: str
) -> str | None:
    """Return another recipient in lower case; None: the payer."""
    if to is None:
        return None
    payers = {choice.recipient for choice in choices}
    # Refunds without an address belong to different buyers.
    is_one = len(choices) == 1 if NO_ADDRESS in payers else len(payers) == 1
    if actor.door != "cli" and not is_one:
        raise WrongValue("Another recipient is for the refunds of one payer.")
    _check_reason(reason)
    return check_recipient(desk, to)


def _check_named_by_proofs(desk: Desk, cases: Sequence[RefundCase]) -> None:
    """Raise `WrongValue` if a method's proof names an address that would lose the money."""
    for case in cases:
        if case.payment.method is not None and not case.needs_address:
            check_recipient(desk, case.recipient)


def _is_redirected(cases: Sequence[RefundCase], to: str | None) -> bool:
    """Whether an approval pays another address than the buyer's.

    A refund that was signed for another address keeps it, even if it was rejected later.
    """
    return to is not None or any(case.recipient != case.own_recipient for case in cases)


def _is_unproven(case: RefundCase) -> bool:
    is_direct = case.payment.flow is Flow.DIRECT
    return is_direct and not case.payer_proven and not case.needs_address


def _check_unproven(cases: Sequence[RefundCase]) -> None:
    for case in filter(_is_unproven, cases):
        doubt = (
            "signed nothing, so somebody else may have used the transaction"
            if case.payment.method is None
            else f"paid by {case.payment.method}, which proves no address"
        )
        raise ActionRefused(
            f"The payer of task {case.task_id} {doubt}: confirm that you want to pay this address."
        )


async def _is_over_cap(desk: Desk, sum_units: int) -> bool:
    since = desk.now() - writes.DAY_S
    approved: int = await desk.store.sum(writes.approved_units, since)
    return approved + sum_units > usdc(desk.settings.refund_daily_cap)


async def _holds_units(desk: Desk) -> int | None:
    """Return the refund key's USDC in units; None if there is no key or no response."""
    if desk.refunds is None:
        return None
    try:
        async with asyncio.timeout(_HOLDS_S):
            return await desk.chain.call_uint(BALANCE_OF + word(desk.refunds.address))
    except (ChainUnavailable, TimeoutError):
        return None
