"""The books summed up by day or by endpoint."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from gateway_operator.books.span import DAY_S, Span, begin_of
from gateway_operator.desk.desk import Desk
from gateway_operator.sql import ledger
from gateway_operator.sql.ledger import LedgerSum, OwedChange


@attrs.frozen(kw_only=True)
class BooksLine:
    """The totals of a day or an endpoint. Money is in units of 10⁻⁶, gas in wei."""

    # The day as 2026-11-30, or the endpoint's slug.
    name: str
    sales: int
    completed: int
    failed: int
    taken_units: int
    refunded_units: int

    # Owed to buyers at the end of the day; None for an endpoint.
    owed_units_at_end: int | None
    vendor_micros: int

    # Completed tasks with a known vendor cost.
    cost_known: int
    gas_wei: int

    # Mined transactions without a known cost.
    gas_unknown: int

    @property
    def margin_units(self) -> int | None:
        """The margin before gas; None if a vendor cost is not known."""
        if self.cost_known < self.completed:
            return None
        return self.kept_at_most_units

    @property
    def kept_at_most_units(self) -> int:
        """The margin before gas and unknown costs."""
        return self.taken_units - self.refunded_units - self.vendor_micros


@attrs.frozen(kw_only=True)
class Books:
    """The lines of a period, and their total."""

    span: Span
    lines: Sequence[BooksLine]
    total: BooksLine


async def read_days(desk: Desk, span: Span) -> Books:
    """Return a line for each day, in order."""
    names = {day.isoformat(): (begin_of(day), begin_of(day) + DAY_S) for day in span.days()}
    found, changes = await desk.store.sum(_read_periods, names)
    lines = [
        _line(name, *found[name], owed=_owed_at(changes, until))
        for name, (_, until) in names.items()
    ]
    return _books(span, lines, owed=_owed_at(changes, span.until))


async def read_endpoints(desk: Desk, span: Span) -> Books:
    """Return a line for each endpoint that was sold, by income."""
    found, changes = await desk.store.sum(_read_periods, {"": (span.since, span.until)})
    sums, failed = found[""]
    slugs = sorted({one.slug for one in sums} | failed.keys())
    lines = [
        _line(
            slug,
            [one for one in sums if one.slug == slug],
            {slug: failed.get(slug, 0)},
            owed=None,
        )
        for slug in slugs
    ]
    lines.sort(key=lambda line: line.taken_units, reverse=True)
    return _books(span, lines, owed=_owed_at(changes, span.until))


_Found = dict[str, tuple[list[LedgerSum], dict[str, int]]]


def _read_periods(
    db: Any, periods: Mapping[str, tuple[float, float]]
) -> tuple[_Found, list[OwedChange]]:
    """Return each period's sums from one database state, and changes of the amount owed."""
    found = {
        name: (ledger.sums(db, since, until), ledger.failed(db, since, until))
        for name, (since, until) in periods.items()
    }
    return found, ledger.owed_changes(db)


def _owed_at(changes: Iterable[OwedChange], moment: float) -> int:
    return sum(change.units for change in changes if change.at < moment)


def _line(
    name: str, sums: Iterable[LedgerSum], failed: Mapping[str, int], *, owed: int | None
) -> BooksLine:
    by_kind: dict[str, list[LedgerSum]] = defaultdict(list)
    for one in sums:
        by_kind[one.kind].append(one)
    results, gas = by_kind["vendor"], by_kind["gas"]
    completed = sum(one.rows for one in results)
    return BooksLine(
        name=name,
        sales=sum(one.rows for one in by_kind["sale"]),
        completed=completed,
        failed=sum(failed.values()),
        taken_units=sum(one.units for one in by_kind["sale"]),
        refunded_units=-sum(one.units for one in by_kind["refund"]),
        owed_units_at_end=owed,
        vendor_micros=-sum(one.cost_micros for one in results),
        cost_known=completed - sum(one.unknown for one in results),
        gas_wei=-sum(one.wei for one in gas),
        gas_unknown=sum(one.unknown for one in gas),
    )


_ADDED = (
    "sales",
    "completed",
    "failed",
    "taken_units",
    "refunded_units",
    "vendor_micros",
    "cost_known",
    "gas_wei",
    "gas_unknown",
)


def _books(span: Span, lines: Sequence[BooksLine], *, owed: int) -> Books:
    added = {name: sum(getattr(line, name) for line in lines) for name in _ADDED}
    total = BooksLine(name="total", owed_units_at_end=owed, **added)
    return Books(span=span, lines=lines, total=total)
