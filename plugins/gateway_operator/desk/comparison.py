"""The sales of the period before the one that is shown."""

from collections.abc import Sequence
from typing import Any

import attrs

from gateway_operator.desk.desk import Desk
from gateway_operator.sql.sums import Period, SalesBar


@attrs.frozen(kw_only=True)
class Before:
    """Sales of a period that is over. Money is in units of 10⁻⁶ USDC."""

    sold: int
    taken_units: int
    back: int
    back_units: int


async def read_before(desk: Desk, period: Period) -> Before | None:
    """Return the sales of the period of the same length before `period`; None without any."""
    length_s = period.bars * period.step_s
    earlier = attrs.evolve(period, since=period.since - length_s)
    bars: Sequence[SalesBar] = await desk.shared.get(
        f"before {length_s}", lambda: _read(desk, earlier)
    )
    if not bars:
        return None
    return Before(
        sold=sum(bar.sold for bar in bars),
        taken_units=sum(bar.taken_units for bar in bars),
        back=sum(bar.back for bar in bars),
        back_units=sum(bar.back_units for bar in bars),
    )


async def _read(desk: Desk, period: Period) -> Any:
    return await desk.store.sum(_sales, desk, period)


def _sales(db: Any, desk: Desk, period: Period) -> Sequence[SalesBar]:
    return desk.cached_before.sales(db, period)
