"""Operators' decisions about unused transfers."""

import contextlib
import re
import uuid

import attrs

from gateway.domain import TX_HASH, Transfer
from gateway.domain.eip3009 import transfers_to
from gateway.errors import ActionRefused, RefundRefused, WrongValue
from gateway.store.sql import Connection
from gateway.store.unused_transfers import owe_unused
from gateway_operator.actions import refunds
from gateway_operator.audit_log import Actor, AlreadyDone, NewAction
from gateway_operator.desk.desk import Desk
from gateway_operator.desk.payments import Unused
from gateway_operator.sql import seen_transfers

_MAX_DIGITS = 6


def parse_log(text: str) -> int:
    """Return a log index; raises `WrongValue`."""
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        raise WrongValue("A transfer is named by its transaction's hash and the log's number.")
    return int(text)


async def mark_seen(desk: Desk, actor: Actor, tx_hash: str, log_index: int, *, reason: str) -> None:
    """Mark a transfer as seen; `reason` is the operator's note about it.

    Raises `WrongValue`, and `ActionRefused` if it paid for a task or is already marked.
    """
    if not re.fullmatch(TX_HASH, tx_hash):
        raise WrongValue("A transaction's hash is 0x followed by 64 hexadecimal digits.")
    if not reason.strip():
        raise WrongValue("Give a reason: what was done about this transfer.")
    tx_hash = tx_hash.lower()
    action = NewAction(
        actor=actor,
        at=desk.now(),
        action="transfer.seen",
        subject=f"{tx_hash}:{log_index}",
        reason=reason,
    )
    with contextlib.suppress(AlreadyDone):
        await desk.records.act(seen_transfers.mark, tx_hash, log_index, desk.now(), action=action)


async def give_back(
    desk: Desk,
    actor: Actor,
    unused: Unused,
    *,
    reason: str = "",
    accepts_unproven: bool = False,
    is_fresh: bool = False,
) -> None:
    """Refund an unused transfer that is too old to buy anything, to its sender.

    It becomes a refund due, which is then approved. If the approval is refused, the refund waits
    among those to decide. Raises what `refunds.approve` does, `ActionRefused` without a refund key
    or while the transfer may still be used, and `ChainUnavailable`.
    """
    if not unused.can_refund:
        raise ActionRefused(
            "This transfer cannot be given back here: a buyer may still use it, its records are "
            "lost, it is marked as seen, or GATEWAY_REFUND_KEY is not set."
        )
    if not accepts_unproven:
        raise ActionRefused("The sender proved nothing: confirm that you want to pay this address.")
    refunds.check_recipient(desk, unused.sender)
    transfer = await _find_transfer(desk, unused)
    action = NewAction(
        actor=actor,
        at=desk.now(),
        action="transfer.refund",
        subject=f"{unused.tx_hash}:{unused.log_index}",
        reason=reason,
    )
    task_id = str(uuid.uuid4())
    try:
        await desk.records.act(_owe, transfer, task_id, desk.now(), action=action)
    except AlreadyDone:
        return
    case = await desk.store.refunds.case(task_id)
    if case is None:
        raise RefundRefused("The refund of this transfer is not known.")
    await refunds.approve(
        desk,
        # The key of the request belongs to the action above.
        attrs.evolve(actor, request=None),
        [refunds.choice_of(case)],
        reason=reason,
        accepts_unproven=True,
        is_fresh=is_fresh,
    )


def _owe(db: Connection, transfer: Transfer, task_id: str, now: float) -> None:
    """Owe the refund, unless an operator has marked the transfer since."""
    place = transfer.tx_hash, transfer.log_index
    if place in seen_transfers.find(db, [transfer.tx_hash]):
        raise RefundRefused("This transfer is marked as seen, so it may be given back already.")
    owe_unused(db, transfer, task_id, now)


async def _find_transfer(desk: Desk, unused: Unused) -> Transfer:
    """Return the transfer as the chain has it now; raises `RefundRefused` if it is gone."""
    receipt = await desk.chain.receipt(unused.tx_hash)
    if receipt is None or not receipt.succeeded:
        raise RefundRefused("The chain does not show this transfer now. Try again later.")
    for one in transfers_to(desk.settings.wallet_key, receipt, desk.settings.chain):
        if (one.log_index, one.sender, one.amount_units) == (
            unused.log_index,
            unused.sender,
            unused.amount_units,
        ):
            return one
    raise RefundRefused("The chain does not show this transfer any more. Nothing was sent.")
