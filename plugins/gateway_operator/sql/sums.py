"""Sums over a period: sales, speed and gas.

They run on the read-only connection. Each reads a covering index: 100,000 tasks take some ten
milliseconds. `cached_bars` caches them.
"""

import attrs

from gateway.store.nonces import UNDATED
from gateway.store.rows import SOLD
from gateway.store.sql import Connection, dialect_of

# Results whose times are measured.
_TIMED = 500
# Wei are summed in two parts: those of 100,000 transactions may exceed 64 bits.
_GIGA = 10**9
# A task that a fallback makes now.
_LENT = "sold_as IS NOT NULL AND sold_as <> slug"
_WEI = "s.gas_wei + coalesce(s.l1_fee_wei, 0)"


@attrs.frozen(kw_only=True)
class Period:
    """Equal bars, of which the last may not be over."""

    # Unix seconds.
    since: float
    step_s: float
    bars: int

    @property
    def until(self) -> float:
        """The end of the last bar."""
        return self.since + self.step_s * self.bars

    def start_of(self, bar: int) -> float:
        """Return the start of a bar."""
        return self.since + self.step_s * bar


@attrs.frozen(kw_only=True)
class SalesBar:
    """Sales of one endpoint in one bar. Money is in units of 10⁻⁶."""

    slug: str
    bar: int
    sold: int
    taken_units: int
    # Refunded, or the refund is owed.
    back: int
    back_units: int
    completed: int
    # Results with a known cost, and its sum in 10⁻⁶ US dollars.
    costed: int
    cost_micros: int


@attrs.frozen(kw_only=True)
class GasSum:
    """The gas of the gateway's own keys in wei, of mined transactions."""

    transactions: int
    # Without a known cost.
    unknown: int
    # L2 and L1 part together.
    wei: int


@attrs.frozen(kw_only=True)
class NewestSale:
    """One of the newest sales."""

    task_id: str
    slug: str
    status: str
    # Such as `content_policy`.
    details: str | None
    # `x402`, `direct` or a payment method.
    flow: str
    # None: USDC on the chain.
    method: str | None
    state: str
    # An address, or the payment method's name for the payer.
    payer: str
    # None: not known yet.
    paid_units: int | None
    price_units: int
    created_at: float


def sold_slugs(db: Connection) -> list[str]:
    """Return every slug that was ever sold, by a loose index scan."""
    rows = db.execute(
        """WITH RECURSIVE found (slug) AS (
               SELECT min(slug) FROM tasks
               UNION ALL
               SELECT (SELECT min(slug) FROM tasks WHERE slug > found.slug) FROM found
               WHERE found.slug IS NOT NULL)
           SELECT slug FROM found WHERE slug IS NOT NULL"""
    )
    lent = db.execute(f"SELECT DISTINCT sold_as FROM tasks WHERE {_LENT}")  # noqa: S608 - a constant
    # The database's order depends on its locale.
    return sorted({row[0] for row in (*rows, *lent)})


def sold_by(db: Connection) -> str:
    """Return the SQL of the slug that a task `t` was bought at, by index if that is possible."""
    return SOLD if _has_lent(db) else "t.slug"


def _has_lent(db: Connection) -> bool:
    """Whether a fallback makes a task now. Its `slug` is the fallback's until it ends."""
    found = db.execute(f"SELECT 1 FROM tasks WHERE {_LENT} LIMIT 1").fetchone()  # noqa: S608 - a constant
    return found is not None


def sales(db: Connection, period: Period) -> list[SalesBar]:
    """Return the sales of each slug and bar that has any."""
    found = (
        sum_bar(db, period, slug, bar) for slug in sold_slugs(db) for bar in range(period.bars)
    )
    return [one for one in found if one is not None]


def sum_bar(db: Connection, period: Period, slug: str, bar: int) -> SalesBar | None:
    """Return one bar; None without a sale.

    One statement per bar reads a range of the index in order; a GROUP BY would sort all rows first.
    """
    where = ["t.slug = ?"]
    if _has_lent(db):
        lent = f"SELECT payment_id FROM tasks WHERE {_LENT}"  # noqa: S608 - a constant
        where = [f"{where[0]} AND t.payment_id NOT IN ({lent})"]
        where.append(f"t.payment_id IN ({lent} AND sold_as = ?)")
    rows = [_sum_rows(db, period, slug, bar, which) for which in where]
    row = [sum(column) for column in zip(*rows, strict=True)]
    if not row[0]:
        return None
    # Every state after settled is a refund's.
    return SalesBar(
        slug=slug,
        bar=bar,
        sold=row[0],
        taken_units=row[1],
        back=row[0] - row[2],
        back_units=row[1] - row[3],
        completed=row[4],
        costed=row[5],
        cost_micros=row[6],
    )


def _sum_rows(db: Connection, period: Period, slug: str, bar: int, which: str) -> list[int]:
    """Return the sums of a bar's tasks that match a condition with the slug."""
    row = db.execute(
        f"""SELECT count(*), sum(p.paid_units),
                  count(CASE WHEN p.state = 'settled' THEN 1 END),
                  sum(CASE WHEN p.state = 'settled' THEN p.paid_units END),
                  count(CASE WHEN t.status = 'completed' THEN 1 END),
                  count(t.cost_micros), sum(t.cost_micros)
           FROM tasks t {join_payments(db)}
           WHERE {which} AND t.created_at >= ? AND t.created_at < ?
               AND p.paid_units IS NOT NULL""",  # noqa: S608 - constants only
        (slug, period.start_of(bar), period.start_of(bar + 1)),
    ).fetchone()
    return [value or 0 for value in row]


def join_payments(db: Connection) -> str:
    """Join payments `p` to tasks `t` through the covering index."""
    dialect = dialect_of(db)
    hint = dialect.indexed_by("payments_sums")
    return f"{dialect.ordered_join} payments p {hint} ON p.id = t.payment_id"


def seconds_to_result(db: Connection, slug: str, since: float) -> list[float]:
    """Return the times from sale to result of the newest results, in seconds, shortest first."""
    rows = db.execute(
        """SELECT completed_at - created_at FROM tasks
           WHERE slug = ? AND created_at >= ? AND status = 'completed'
           ORDER BY created_at DESC LIMIT ?""",
        (slug, since, _TIMED),
    )
    return sorted(row[0] for row in rows)


def gas(db: Connection, since: float) -> GasSum:
    """Return the cost of transactions that were mined since a moment.

    A transaction whose block time is not known is dated by its sending.
    """
    row = db.execute(
        f"""SELECT count(*), count(wei), sum(wei / {_GIGA}), sum(wei % {_GIGA})
            FROM (SELECT {_WEI} AS wei FROM sent_transactions s WHERE s.mined_at >= ?
                  UNION ALL SELECT {_WEI} FROM sent_transactions s
                  WHERE s.sent_at >= ? AND {UNDATED}) AS mined""",  # noqa: S608 - constants only
        (since, since),
    ).fetchone()
    return GasSum(
        transactions=row[0],
        unknown=row[0] - row[1],
        wei=(row[2] or 0) * _GIGA + (row[3] or 0),
    )


def newest_sales(db: Connection, limit: int) -> list[NewestSale]:
    """Return the newest sales, newest first."""
    rows = db.execute(
        f"""SELECT t.id, {SOLD}, t.status, t.details, coalesce(p.method, p.flow), p.method, p.state,
                  coalesce(m.payer, p.payer), p.paid_units, p.price_units, t.created_at
           FROM tasks t JOIN payments p ON p.id = t.payment_id
               LEFT JOIN method_proofs m ON m.payment_id = p.id
           ORDER BY t.created_at DESC, t.payment_id DESC LIMIT ?""",  # noqa: S608 - a constant
        (limit,),
    )
    names = [field.name for field in attrs.fields(NewestSale)]
    return [NewestSale(**dict(zip(names, row, strict=True))) for row in rows]
