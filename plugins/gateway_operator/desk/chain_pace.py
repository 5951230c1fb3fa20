"""The chain's pace for the operator's pages and alarms, measured every ten minutes."""

import attrs

from gateway.chain.pace import measure_pace
from gateway_operator.desk.desk import Desk
from gateway_operator.sql import chain_pace


@attrs.frozen(kw_only=True)
class PaceFacts:
    """Seconds between two blocks: measured now, and usually."""

    now_s: float
    usual_s: float


async def read_pace(desk: Desk) -> PaceFacts | None:
    """Return the last known pace; None while it is unknown.

    Its three RPC calls are shared for ten minutes, so a page view causes none.
    """
    seen = await desk.last_paces.ask("pace", lambda: _measure(desk))
    return seen.value


async def _measure(desk: Desk) -> PaceFacts | None:
    now_s = await measure_pace(desk.chain)
    if now_s is None:
        return None
    usual = await desk.store.write(chain_pace.note, now_s, desk.now())
    return PaceFacts(now_s=now_s, usual_s=usual.block_s)
