"""Operators' decisions about unused transfers."""

import contextlib
import re

from gateway.domain import TX_HASH
from gateway.errors import WrongValue
from gateway_operator.audit_log import Actor, AlreadyDone, NewAction
from gateway_operator.desk.desk import Desk
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
