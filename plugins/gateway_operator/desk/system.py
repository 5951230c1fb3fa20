"""Checks of the machine's clock and the refund key's ETH."""

import asyncio
from functools import partial

from gateway.contracts import Chain, Clock
from gateway.domain.eip3009 import BALANCE_OF, word
from gateway.errors import ChainUnavailable
from gateway.payments import Refunds
from gateway_operator.desk.desk import Desk
from gateway_operator.desk.wording import usdc
from gateway_operator.sql.current_state import owed_now

_ANSWER_S = 5.0


async def read_clock(chain: Chain, now: Clock) -> float:
    """Return the seconds that this machine's clock is ahead of the newest block; negative: behind.

    Blocks carry whole seconds. Raises `ChainUnavailable`.
    """
    asked_at = now()
    newest = await chain.newest_head()
    return asked_at - newest.timestamp


async def refund_key_problem(desk: Desk) -> str | None:
    """Return why approved refunds are not sent now; None if nothing is known."""
    if desk.refunds is None:
        return "GATEWAY_REFUND_KEY is not set. Set it and restart the gateway; approvals stay."
    try:
        async with asyncio.timeout(_ANSWER_S):
            return await _find_shortage(desk, desk.refunds)
    except (ChainUnavailable, TimeoutError):
        return None


async def _find_shortage(desk: Desk, refunds: Refunds) -> str | None:
    address, network = refunds.address, desk.settings.chain.name
    if not await desk.chain.gas_balance(address):
        return f"the refund key {address} holds no ETH. Send it some ETH on {network}."
    if not await refunds.can_send():
        return f"the refund key {address} has too little ETH, or gas is over the cap."
    holds = await desk.chain.call_uint(BALANCE_OF + word(address))
    owed = await desk.store.sum(partial(owed_now, is_automatic=desk.settings.refunds_automatically))
    if holds < owed.moving_units:
        return (
            f"the refund key {address} holds {usdc(holds)} USDC, and {usdc(owed.moving_units)} are "
            "approved. Send it USDC; what it can pay is sent."
        )
    return None
