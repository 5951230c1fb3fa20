"""Sums of bars that have not changed since they were made, kept for the next look.

To sum a month, the payment of every sale is looked up. Of a bar that nothing happened to since,
the sums are the same, so a second look reads what is new only.
"""

import math

import attrs

from gateway.store.sql import Connection
from gateway_operator.sql import sums
from gateway_operator.sql.sums import Period, SalesBar

# After more changes than this, all is summed anew: that is as quick as finding their bars.
_MOST_CHANGES = 20_000
# Nodes may write down two events in another order than that of their ids, some apart.
_OVERLAP = 200
# By slug and the start of the bar; None: no sale.
_Bars = dict[tuple[str, float], SalesBar | None]


class KeptBars:
    """Sums of sales by slug and bar, never older than the state of the database that is read.

    For one database, and one thread at a time. Kept is what the newest period of each bar's length
    has, so callers use a few lengths, and periods that begin at a whole multiple of it.
    """

    def __init__(self) -> None:
        self._kept: dict[float, _Bars] = {}
        self._seen = 0

    def sales(self, db: Connection, period: Period) -> list[SalesBar]:
        """Return what `sums.sales` returns; `db` is in a transaction, so that it reads one state.

        Every new payment and every change of a payment's state is a payment event, also of other
        processes. What changes without one is a task that is not over: its bar is not kept.
        """
        self._forget_changed(db)
        known = self._kept.pop(period.step_s, {})
        found: _Bars = {}
        for slug in sums.sold_slugs(db):
            for bar in range(period.bars):
                start = period.start_of(bar)
                if (slug, start) in known:
                    found[slug, start] = _as_bar(known[slug, start], bar)
                else:
                    found[slug, start] = sums.sum_bar(db, period, slug, bar)
        unfinished = {_start_of(at, period.step_s) for at in _unfinished(db)}
        self._kept[period.step_s] = {
            place: one for place, one in found.items() if place[1] not in unfinished
        }
        return [one for one in found.values() if one is not None]

    def _forget_changed(self, db: Connection) -> None:
        """Drop the bars of every payment that something happened to since the last look."""
        newest = db.execute("SELECT coalesce(max(id), 0) FROM payment_events").fetchone()[0]
        # A newest event that is older than the last look's is another database's.
        if not self._seen <= newest <= self._seen + _MOST_CHANGES:
            self._kept.clear()
        if self._kept:
            changed = _changed_after(db, self._seen - _OVERLAP)
            for step_s, bars in self._kept.items():
                starts = {_start_of(at, step_s) for at in changed}
                for place in [place for place in bars if place[1] in starts]:
                    del bars[place]
        self._seen = newest


def _start_of(at: float, step_s: float) -> float:
    """Return when the bar of a moment begins."""
    return math.floor(at / step_s) * step_s


def _as_bar(kept: SalesBar | None, bar: int) -> SalesBar | None:
    """Return the sums at their place in another period."""
    return kept if kept is None or kept.bar == bar else attrs.evolve(kept, bar=bar)


def _changed_after(db: Connection, event_id: int) -> list[float]:
    """Return when the tasks were made whose payments have an event after this one."""
    rows = db.execute(
        """SELECT t.created_at FROM payment_events e JOIN tasks t ON t.payment_id = e.payment_id
           WHERE e.id > ?""",
        (event_id,),
    )
    return [row[0] for row in rows]


def _unfinished(db: Connection) -> list[float]:
    """Return when the tasks were made that are paid and not over."""
    rows = db.execute("SELECT created_at FROM tasks WHERE status IN ('queued', 'processing')")
    return [row[0] for row in rows]
