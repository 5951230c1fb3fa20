"""Operators' decisions about unused transfers."""

import contextlib
import re
import uuid

import attrs

from gateway.domain import TX_HASH, Decision, RefundCase, Transfer
from gateway.domain.eip3009 import TRANSFER_TOPIC, transaction_key, transfers_to
from gateway.errors import ActionRefused, NeedsFresh, RefundRefused, WrongValue
from gateway.store.sql import Connection
from gateway.store.unused_transfers import owe_unused
from gateway_operator.actions import refunds
from gateway_operator.audit_log import Actor, AlreadyDone, NewAction
from gateway_operator.desk.desk import Desk
from gateway_operator.desk.payments import Unused, find_unused
from gateway_operator.movements import with_earlier_keys
from gateway_operator.sql import seen_transfers

_MAX_DIGITS = 6


def parse_log(text: str) -> int:
    """Return a log index; raises `WrongValue`."""
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        raise WrongValue("A transfer is named by its transaction's hash and the log's number.")
    return int(text)


async def mark_seen(
    desk: Desk,
    actor: Actor,
    tx_hash: str,
    log_index: int,
    *,
    reason: str,
    is_fresh: bool = False,
) -> None:
    """Mark a transfer as seen; `reason` is the operator's note about it.

    One that left an address of the gateway is booked so, and its alarm ends. Raises `WrongValue`,
    `ActionRefused` if it paid for a task, is already marked or not on the chain, `NeedsFresh` for
    one that left, and `ChainUnavailable`.
    """
    if not re.fullmatch(TX_HASH, tx_hash):
        raise WrongValue("A transaction's hash is 0x followed by 64 hexadecimal digits.")
    if not reason.strip():
        raise WrongValue("Give a reason: what was done about this transfer.")
    tx_hash = tx_hash.lower()
    left = await _has_left(desk, tx_hash, log_index)
    if left and actor.door != "cli" and not is_fresh:
        raise NeedsFresh(
            "This transfer left an address of the gateway: enter the password to book it as yours."
        )
    action = NewAction(
        actor=actor,
        at=desk.now(),
        action="transfer.seen",
        subject=f"{tx_hash}:{log_index}",
        reason=reason,
    )
    write = seen_transfers.book if left else seen_transfers.mark
    with contextlib.suppress(AlreadyDone):
        await desk.records.act(write, tx_hash, log_index, desk.now(), action=action)


async def _has_left(desk: Desk, tx_hash: str, log_index: int) -> bool:
    """Whether a transfer left an address of the gateway.

    Raises `ActionRefused` if it is not known: no mark is made in advance.
    """
    place = (tx_hash, log_index)
    await desk.movements.load()
    moved = {one.movement.place: one.movement.is_out for one in desk.movements.known}
    came = {(one.transfer.tx_hash, one.transfer.log_index): False for one in desk.unused.known}
    if (known := (came | moved).get(place)) is not None:
        return known
    receipt = await desk.chain.receipt(tx_hash)
    logs = () if receipt is None or not receipt.succeeded else receipt.logs
    token = desk.settings.chain.token
    for log in logs:
        if log.index == log_index and log.address == token and log.topics[:1] == (TRANSFER_TOPIC,):
            roles = await with_earlier_keys(desk.store, desk.roles())
            return len(log.topics) > 1 and "0x" + log.topics[1][-40:] in roles
    raise ActionRefused("The chain shows no such transfer of USDC now. Nothing was marked.")


async def give_back(
    desk: Desk,
    actor: Actor,
    tx_hash: str,
    log_index: int,
    *,
    reason: str = "",
    accepts_unproven: bool = False,
    is_fresh: bool = False,
) -> None:
    """Refund an unused transfer that is too old to buy anything, to its sender.

    It becomes a refund due, which is then approved. If the approval is refused, the refund waits
    among those to decide; a repeat of the request approves it. Raises what `refunds.approve` does,
    `NotFound`, `ActionRefused` without a refund key or while the transfer may still be used, and
    `ChainUnavailable`.
    """
    if not accepts_unproven:
        raise ActionRefused("The sender proved nothing: confirm that you want to pay this address.")
    action = NewAction(
        actor=actor,
        at=desk.now(),
        action="transfer.refund",
        subject=f"{tx_hash}:{log_index}",
        reason=reason,
    )
    await _owe_once(desk, action, tx_hash, log_index)
    case = await _find_owed(desk, tx_hash)
    if case.decision is Decision.APPROVED:
        return
    await refunds.approve(
        desk,
        # The key of the request belongs to the action above.
        attrs.evolve(actor, request=None),
        # A repeat overrides no rejection.
        [attrs.evolve(refunds.choice_of(case), is_rejected=False)],
        reason=reason,
        accepts_unproven=True,
        is_fresh=is_fresh,
    )


async def _owe_once(desk: Desk, action: NewAction, tx_hash: str, log_index: int) -> None:
    # A repeat does not find the transfer among the unused ones.
    if await refunds.was_done(desk, action.actor, action.action, action.subject):
        return
    transfer = await _find_refundable(desk, tx_hash, log_index)
    with contextlib.suppress(AlreadyDone):
        await desk.records.act(_owe, transfer, str(uuid.uuid4()), desk.now(), action=action)


async def _find_owed(desk: Desk, tx_hash: str) -> RefundCase:
    """Return the refund of a transfer; one transaction has at most one."""
    task = await desk.store.find_claim(transaction_key(tx_hash))
    case = None if task is None else await desk.store.refunds.case(task.id)
    if case is None:
        raise RefundRefused("The refund of this transfer is not known.")
    return case


async def _find_refundable(desk: Desk, tx_hash: str, log_index: int) -> Transfer:
    """Return an unused transfer as the chain has it now; raises what `give_back` does."""
    unused = await find_unused(desk, tx_hash, log_index)
    if not unused.can_refund:
        raise ActionRefused(
            "This transfer cannot be given back here: a buyer may still use it, its records are "
            "lost, it is marked as seen, or GATEWAY_REFUND_KEY is not set."
        )
    refunds.check_recipient(desk, unused.sender)
    return await _find_transfer(desk, unused)


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
