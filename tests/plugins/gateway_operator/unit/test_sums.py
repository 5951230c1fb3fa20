"""Sums for the operator's pages are correct, and read many rows only a few times."""

import contextlib
import sqlite3

import pytest

from gateway.store.sqlite.migrations import migrate
from gateway_operator.sql import current_state, sums
from gateway_operator.sql.sums import Period
from tests.operator_history import Sale, add_sale, add_sales
from tests.sqlite_steps import count_steps

NOW = 1_782_172_800.0
DAY_S = 86_400.0
MONTH = Period(since=NOW - 30 * DAY_S, step_s=DAY_S, bars=30)
SALES = 3_000


@pytest.fixture
def db():
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        opened.row_factory = sqlite3.Row
        migrate(opened)
        yield opened


def test_an_empty_database_sums_to_nothing(db):
    assert sums.sold_slugs(db) == []
    assert sums.sales(db, MONTH) == []
    assert sums.gas(db, 0.0) == sums.GasSum(transactions=0, unknown=0, wei=0)
    assert sums.newest_sales(db, 8) == []
    assert current_state.open_payments(db) == current_state.Waiting(count=0, since=None)


def test_a_bar_counts_sales_what_goes_back_and_what_is_known_of_costs(db):
    at = MONTH.start_of(3) + 5
    add_sales(
        db,
        [
            Sale(at=at, cost_micros=7_000),
            Sale(at=at),
            Sale(at=at, status="failed"),
            Sale(at=at, status="failed", state="refunded"),
            # Not paid.
            Sale(at=at, status="queued", state="reserved"),
            Sale(at=at, status="queued", state="released"),
            # Before and after the period.
            Sale(at=MONTH.since - 1),
            Sale(at=MONTH.until + 1),
        ],
    )
    (bar,) = sums.sales(db, MONTH)
    assert (bar.slug, bar.bar, bar.sold, bar.taken_units) == ("picture", 3, 4, 80_000)
    assert (bar.back, bar.back_units) == (2, 40_000)
    assert (bar.completed, bar.costed, bar.cost_micros) == (2, 1, 7_000)


def test_gas_is_summed_beyond_64_bits(db):
    for _ in range(3):
        add_sale(db, Sale(at=NOW, gas_wei=6 * 10**18))
    assert sums.gas(db, NOW - 1).wei == 18 * 10**18


def test_every_slug_is_found_once(db):
    add_sales(db, [Sale(at=NOW, slug=slug) for slug in ("b", "a", "b", "c")])
    assert sums.sold_slugs(db) == ["a", "b", "c"]


def test_an_endpoints_failures_leave_out_what_its_policy_refused(db):
    failed = {"status": "failed", "at": NOW}
    add_sales(db, [Sale(**failed), Sale(**failed, details="content_policy"), Sale(at=NOW)])
    assert current_state.recent_failures(db, "picture") == (1, 2)


def test_the_overview_reads_the_sales_of_a_month_a_few_times(db):
    slugs = [f"endpoint-{number}" for number in range(6)]
    db.execute("BEGIN")
    add_sale(db, Sale(at=MONTH.since, slug=slugs[0]))
    _multiply(db, slugs)
    db.execute("COMMIT")
    assert db.execute("SELECT count(*) FROM tasks").fetchone()[0] == SALES
    scan = "SELECT count(*), sum(cost_micros) FROM tasks WHERE length(request) > 0"
    once = count_steps(db, lambda: db.execute(scan).fetchone())
    assert count_steps(db, lambda: _read_overview(db)) < 12 * once


def _multiply(db: sqlite3.Connection, slugs: list[str]) -> None:
    """Multiply a sale over a month, within the database."""
    numbers = (
        f"""WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < {SALES})"""
    )
    step = 30 * DAY_S / SALES
    payments = [row[1] for row in db.execute("PRAGMA table_info(payments)")]
    changed = {"id": "n.i", "paid_tx": "printf('0x%064x', n.i)", "request_hash": "n.i",
               "created_at": f"created_at + (n.i - 1) * {step}"}  # fmt: skip
    columns = ", ".join(changed.get(name, name) for name in payments)
    db.execute(f"{numbers} INSERT INTO payments SELECT {columns} FROM payments, n WHERE id = 1")
    names = " ".join(f"WHEN {place} THEN '{slug}'" for place, slug in enumerate(slugs))
    changed = {"id": "printf('task_%024x', n.i)", "payment_id": "n.i",
               "slug": f"CASE n.i % {len(slugs)} {names} END",
               "created_at": f"created_at + (n.i - 1) * {step}", "cost_micros": "1000"}  # fmt: skip
    tasks = [row[1] for row in db.execute("PRAGMA table_info(tasks)")]
    columns = ", ".join(changed.get(name, name) for name in tasks)
    first = "(SELECT * FROM tasks LIMIT 1)"
    db.execute(f"{numbers} INSERT INTO tasks SELECT {columns} FROM {first}, n")


def _read_overview(db: sqlite3.Connection) -> None:
    bars = sums.sales(db, MONTH)
    for slug in sums.sold_slugs(db):
        sums.seconds_to_result(db, slug, MONTH.since)
    sums.gas(db, MONTH.since)
    sums.newest_sales(db, 8)
    current_state.owed_now(db, is_automatic=False)
    assert sum(bar.sold for bar in bars) == SALES


def test_the_margin_of_late_is_of_twenty_tasks_whose_cost_is_known(db):
    add_sales(db, [Sale(at=NOW - 500 + i, cost_micros=25_000) for i in range(19)])
    add_sales(db, [Sale(at=NOW - 100 + i) for i in range(10)])
    assert current_state.recent_margin(db, "picture") is None
    add_sale(db, Sale(at=NOW, cost_micros=5_000, status="failed"))
    # 19 sold for 0.02 and cost 0.025; the failed one cost 0.005 and was refunded.
    assert current_state.recent_margin(db, "picture") == -5_000
    add_sales(db, [Sale(at=NOW + i, cost_micros=1_000) for i in range(20)])
    assert current_state.recent_margin(db, "picture") == 19_000
