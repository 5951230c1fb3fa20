"""What an operator decides about payers that are barred from x402."""

import contextlib

from gateway.contracts.operators import Actor, AlreadyDone, NewAction
from gateway.errors import ActionRefused
from gateway.payments.exposure import BARRED_S
from gateway.store import payers
from gateway_operator.desk.desk import Desk


async def lift_bar(desk: Desk, actor: Actor, address: str, *, reason: str) -> None:
    """Let a payer pay by x402 again; settlements that failed until now bar it no more.

    Raises `ActionRefused` where the payer is not barred.
    """
    payer, now = address.lower(), desk.now()
    if await desk.store.payers.failure_of(payer, since=now - BARRED_S) is None:
        raise ActionRefused(
            f"{address} is not barred; `gateway payers barred` lists those that are."
        )
    action = NewAction(actor=actor, at=now, action="payer.lift", subject=payer, reason=reason)
    with contextlib.suppress(AlreadyDone):
        await desk.store.operators.act(payers.lift, payer, reason, now, action=action)
