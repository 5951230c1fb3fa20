"""A cache of the sums of unchanged bars.

Summing a month reads the payment of every sale; the cache reads only bars with new payment events.
"""

import math

import attrs

from gateway.store.sql import Connection
from gateway_operator.sql import sums
from gateway_operator.sql.sums import Period, SalesBar

# With more changes, summing everything is as fast.
_MAX_CHANGES = 20_000
# Nodes may commit events out of the order of their ids, so read some again.
_OVERLAP = 200
# By slug and start; None: no sale.
_Bars = dict[tuple[str, float], SalesBar | None]


class CachedBars:
    """Sums of sales by slug and bar, never older than the database state of the caller.

    For one database and one thread at a time. Only the newest period of each bar length is kept, so
    use few lengths, and periods that begin at a whole multiple of them.
    """

    def __init__(self) -> None:
        self._kept: dict[float, _Bars] = {}
        self._seen = 0

    def sales(self, db: Connection, period: Period) -> list[SalesBar]:
        """Return the same as `sums.sales`. `db` must be in a transaction, to read one state.

        Every change of a payment, by any process, is a payment event. Unfinished tasks change
        without one, so their bars are not cached.
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
        """Drop the bars of payments with an event since the last call."""
        newest = db.execute("SELECT coalesce(max(id), 0) FROM payment_events").fetchone()[0]
        # The ids went back (another database), or there are too many changes.
        if not self._seen <= newest <= self._seen + _MAX_CHANGES:
            self._kept.clear()
        if self._kept:
            changed = _changed_after(db, self._seen - _OVERLAP)
            for step_s, bars in self._kept.items():
                starts = {_start_of(at, step_s) for at in changed}
                for place in [place for place in bars if place[1] in starts]:
                    del bars[place]
        self._seen = newest


def _start_of(at: float, step_s: float) -> float:
    return math.floor(at / step_s) * step_s


def _as_bar(kept: SalesBar | None, bar: int) -> SalesBar | None:
    return kept if kept is None or kept.bar == bar else attrs.evolve(kept, bar=bar)


def _changed_after(db: Connection, event_id: int) -> list[float]:
    """Return when tasks were created whose payments have a later event."""
    rows = db.execute(
        """SELECT t.created_at FROM payment_events e JOIN tasks t ON t.payment_id = e.payment_id
           WHERE e.id > ?""",
        (event_id,),
    )
    return [row[0] for row in rows]


def _unfinished(db: Connection) -> list[float]:
    """Return when tasks were created that are paid and not ended."""
    rows = db.execute("SELECT created_at FROM tasks WHERE status IN ('queued', 'processing')")
    return [row[0] for row in rows]
