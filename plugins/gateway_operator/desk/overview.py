"""The overview: sales, conditions, and income of a period."""

import asyncio
import math
import shutil
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import attrs

from gateway.errors import ValidationError
from gateway_operator.checklist import Item
from gateway_operator.desk.conditions import Condition, Thresholds, find_conditions
from gateway_operator.desk.desk import Desk
from gateway_operator.desk.facts import EndpointFacts, Facts, read_facts
from gateway_operator.desk.first_steps import read_checklist, without_items
from gateway_operator.sql import sums
from gateway_operator.sql.cached_bars import CachedBars
from gateway_operator.sql.current_state import database_bytes
from gateway_operator.sql.sums import GasSum, NewestSale, Period, SalesBar

# By name: seconds, and number of bars.
PERIODS: Mapping[str, tuple[float, int]] = {
    "1h": (3600.0, 30),
    "24h": (86_400.0, 24),
    "7d": (604_800.0, 28),
    "30d": (2_592_000.0, 30),
}
DEFAULT_PERIOD = "24h"
Selling = Literal["yes", "some", "no", "unknown"]
_NEWEST = 8


@attrs.frozen(kw_only=True)
class EndpointSums:
    """Sales of one endpoint in a period. Money is in units of 10⁻⁶."""

    # None: no plugin registers it now.
    facts: EndpointFacts | None
    slug: str
    sold: int = 0
    taken_units: int = 0
    back: int = 0
    back_units: int = 0
    completed: int = 0
    costed: int = 0
    cost_micros: int = 0
    # Seconds within which half and 95 % of the newest results came; None: no results.
    half_s: float | None = None
    most_s: float | None = None

    @property
    def is_costed(self) -> bool:
        """Whether the cost of every result is known."""
        return self.costed >= self.completed

    @property
    def margin_units(self) -> int | None:
        """The margin before gas; None if a cost is not known."""
        if not self.is_costed:
            return None
        return self.taken_units - self.back_units - self.cost_micros

    @property
    def success(self) -> float | None:
        """The delivered share of ended sales; None without any."""
        ended = self.completed + self.back
        return self.completed / ended if ended else None


@attrs.frozen(kw_only=True)
class Money:
    """Income and costs of a period, in units of 10⁻⁶ USDC or US dollars."""

    sold: int
    taken_units: int
    back: int
    back_units: int
    vendor_micros: int
    # Results without a known cost.
    uncosted: int
    gas: GasSum

    @property
    def kept_units(self) -> int:
        """The margin before gas; an upper bound if `uncosted` is not 0."""
        return self.taken_units - self.back_units - self.vendor_micros

    @property
    def kept_share(self) -> float | None:
        """The margin as a share of income; None without sales."""
        return self.kept_units / self.taken_units if self.taken_units else None


@attrs.frozen(kw_only=True)
class Machine:
    """Disk and database, in bytes."""

    disk_free: int
    disk_size: int
    database: int


@attrs.frozen(kw_only=True)
class Overview:
    """The data of the page."""

    period_name: str
    period: Period
    selling: Selling
    needs: Sequence[Condition]
    money: Money
    bars: Sequence[SalesBar]
    endpoints: Sequence[EndpointSums]
    newest: Sequence[NewestSale]
    machine: Machine
    facts: Facts
    # Open and finished steps before selling.
    checklist: Sequence[Item]

    @property
    def steps_left(self) -> int:
        """The number of open items."""
        return sum(not item.is_done for item in self.checklist)


def period_of(name: str, now: float) -> Period:
    """Return a period that ends with the current bar; raises `ValidationError`.

    Bars begin at whole multiples of their length in UTC, so that a finished bar does not change.
    """
    if name not in PERIODS:
        raise ValidationError(f"range must be one of {', '.join(PERIODS)}.")
    length_s, bars = PERIODS[name]
    step_s = length_s / bars
    end = (math.floor(now / step_s) + 1) * step_s
    return Period(since=end - length_s, step_s=step_s, bars=bars)


async def read_overview(desk: Desk, period_name: str = DEFAULT_PERIOD) -> Overview:
    """Return the overview, cached for two seconds.

    Raises `ValidationError` for an unknown period.
    """
    period_of(period_name, 0.0)
    found: Overview = await desk.shared.get(
        f"overview {period_name}", lambda: _read_overview(desk, period_name)
    )
    return found


async def _read_overview(desk: Desk, period_name: str) -> Overview:
    period = period_of(period_name, desk.now())
    if desk.running is not None:
        # Only the leader's alarms search, and any node may show this page.
        await desk.movements.refresh(0.0)
    facts, checklist, stored, disk = await asyncio.gather(
        read_facts(desk),
        read_checklist(desk),
        desk.store.sum(_read_period, period, desk.cached_bars),
        asyncio.to_thread(shutil.disk_usage, desk.settings.data_dir),
    )
    bars: list[SalesBar] = stored["bars"]
    endpoints = sum_endpoints(facts, bars, stored["times"])
    return Overview(
        period_name=period_name,
        period=period,
        selling=_find_selling(facts),
        needs=without_items(find_conditions(facts, Thresholds.of(desk.settings)), checklist),
        checklist=checklist,
        money=_sum_money(endpoints, stored["gas"]),
        bars=bars,
        endpoints=endpoints,
        newest=stored["newest"],
        machine=Machine(
            disk_free=disk.free, disk_size=disk.total, database=stored["database_bytes"]
        ),
        facts=facts,
    )


def _read_period(db: Any, period: Period, cached_bars: CachedBars) -> dict[str, Any]:
    """Return the data of a period, from one database state."""
    bars = cached_bars.sales(db, period)
    return {
        "bars": bars,
        "times": read_times(db, {bar.slug for bar in bars}, period.since),
        "gas": sums.gas(db, period.since),
        "newest": sums.newest_sales(db, _NEWEST),
        "database_bytes": database_bytes(db),
    }


def read_times(
    db: Any, slugs: set[str], since: float
) -> dict[str, tuple[float | None, float | None]]:
    """Return by slug the seconds within which half and 95 % of the results came."""
    found = {slug: sums.seconds_to_result(db, slug, since) for slug in slugs}
    return {slug: (_rank(times, 0.5), _rank(times, 0.95)) for slug, times in found.items()}


def _rank(times: Sequence[float], share: float) -> float | None:
    """Return the time within which a share came; `times` are sorted."""
    return times[max(0, math.ceil(len(times) * share) - 1)] if times else None


def sum_endpoints(
    facts: Facts,
    bars: Sequence[SalesBar],
    times: Mapping[str, tuple[float | None, float | None]],
) -> list[EndpointSums]:
    """Return each endpoint registered, or sold in the period, by slug."""
    known = {one.slug: one for one in facts.endpoints}
    slugs = sorted({*known, *(bar.slug for bar in bars)})
    found = []
    for slug in slugs:
        mine = [bar for bar in bars if bar.slug == slug]
        half_s, most_s = times.get(slug, (None, None))
        found.append(
            EndpointSums(
                facts=known.get(slug),
                slug=slug,
                sold=sum(bar.sold for bar in mine),
                taken_units=sum(bar.taken_units for bar in mine),
                back=sum(bar.back for bar in mine),
                back_units=sum(bar.back_units for bar in mine),
                completed=sum(bar.completed for bar in mine),
                costed=sum(bar.costed for bar in mine),
                cost_micros=sum(bar.cost_micros for bar in mine),
                half_s=half_s,
                most_s=most_s,
            )
        )
    return found


def _sum_money(endpoints: Sequence[EndpointSums], gas: GasSum) -> Money:
    return Money(
        sold=sum(one.sold for one in endpoints),
        taken_units=sum(one.taken_units for one in endpoints),
        back=sum(one.back for one in endpoints),
        back_units=sum(one.back_units for one in endpoints),
        vendor_micros=sum(one.cost_micros for one in endpoints),
        uncosted=sum(max(0, one.completed - one.costed) for one in endpoints),
        gas=gas,
    )


def _find_selling(facts: Facts) -> Selling:
    if facts.selling is None:
        return "unknown"
    offered = [one for one in facts.endpoints if not one.is_switched_off]
    if facts.selling == "nothing" or not any(one.sells for one in offered):
        return "no"
    is_all = facts.selling == "everything" and all(one.sells for one in offered)
    return "yes" if is_all else "some"
