"""Checks of the machine's clock and the refund key's ETH."""

import asyncio

from gateway.contracts import Chain, Clock
from gateway.errors import ChainUnavailable
from gateway_operator.desk.desk import Desk

_ANSWER_S = 5.0


async def read_clock(chain: Chain, now: Clock) -> float:
    """Return the seconds that this machine's clock is ahead of the newest block; negative: behind.

    Blocks carry whole seconds. Raises `ChainUnavailable`.
    """
    asked_at = now()
    newest = await chain.newest_head()
    return asked_at - newest.timestamp


async def refund_key_problem(desk: Desk) -> str | None:
    """Return why no approved refund can be sent now; None if nothing is known."""
    if desk.refunds is None:
        return "GATEWAY_REFUND_KEY is not set."
    try:
        async with asyncio.timeout(_ANSWER_S):
            wei = await desk.chain.gas_balance(desk.refunds.address)
    except (ChainUnavailable, TimeoutError):
        return None
    if wei:
        return None
    network = desk.settings.chain.name
    return f"the refund key {desk.refunds.address} holds no ETH. Send it some ETH on {network}."
