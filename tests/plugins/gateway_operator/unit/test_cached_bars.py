"""Cached sums of the overview equal the database's, and are read again after a change."""

import contextlib
import random
import sqlite3

import pytest

from gateway.store.sqlite.migrations import migrate
from gateway_operator.sql import sums
from gateway_operator.sql.cached_bars import CachedBars
from gateway_operator.sql.sums import Period
from tests.operator_history import Sale, add_sale, add_sales
from tests.sqlite_steps import count_steps

DAY_S = 86_400.0
MONTH = Period(since=20_600 * DAY_S, step_s=DAY_S, bars=30)
HOURS = Period(since=20_629 * DAY_S, step_s=3600.0, bars=24)
SLUGS = ("a", "b", "c")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "gateway.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        migrate(db)
    return path


@pytest.fixture
def written(path):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.row_factory = sqlite3.Row
        db.execute("PRAGMA synchronous = OFF")
        yield db


@pytest.fixture
def read(path):
    """Connection of the pages, another one than the writer's."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.row_factory = sqlite3.Row
        yield db


def _by_place(bars):
    return {(one.slug, one.bar): one for one in bars}


def _change(db, rng):
    """Change a sale as a gateway, or a command beside it, may at any time."""
    at = MONTH.since + rng.random() * 30 * DAY_S
    tasks = "SELECT id, payment_id FROM tasks WHERE status = ? ORDER BY id LIMIT 1"
    match rng.randrange(7):
        case 0 | 1:
            status, state = rng.choice(
                [("completed", ""), ("failed", ""), ("queued", ""), ("held", "reserved")]
            )
            cost = rng.choice([None, 3_000])
            add_sale(
                db,
                Sale(at=at, slug=rng.choice(SLUGS), status=status, state=state, cost_micros=cost),
            )
        case 2:
            if found := db.execute(tasks, ("held",)).fetchone():
                db.execute(
                    """UPDATE payments SET state = 'settled', paid_tx = 'held' || id,
                           paid_log_index = 0, paid_units = price_units WHERE id = ?""",
                    (found["payment_id"],),
                )
                db.execute("UPDATE tasks SET status = 'queued' WHERE id = ?", (found["id"],))
        case 3:
            if found := db.execute(tasks, ("queued",)).fetchone():
                db.execute("UPDATE tasks SET status = 'processing' WHERE id = ?", (found["id"],))
        case 4:
            if found := db.execute(tasks, ("processing",)).fetchone():
                db.execute(
                    """UPDATE tasks SET status = 'completed', result = '{}', cost_micros = 5000
                       WHERE id = ?""",
                    (found["id"],),
                )
        case 5 | 6:
            # A refund of any result, however old.
            db.execute(
                """UPDATE payments SET state = 'refund_due' WHERE id = (
                       SELECT payment_id FROM tasks t JOIN payments p ON p.id = t.payment_id
                       WHERE t.status = 'completed' AND p.state = 'settled'
                       ORDER BY payment_id * ? % 101 LIMIT 1)""",
                (rng.randrange(1, 101),),
            )


@pytest.mark.parametrize("seed", range(2))
def test_kept_sums_are_those_of_the_database_after_every_change(written, read, seed):
    rng = random.Random(seed)
    kept = CachedBars()
    for _ in range(120):
        for _ in range(rng.randrange(4)):
            written.execute("BEGIN")
            _change(written, rng)
            written.execute("COMMIT")
        for period in (MONTH, HOURS):
            assert _by_place(kept.sales(read, period)) == _by_place(sums.sales(read, period))
    assert sums.sales(read, MONTH)


def test_a_refund_of_an_old_sale_is_seen_at_once(written, read):
    add_sales(written, [Sale(at=MONTH.start_of(2) + 5), Sale(at=MONTH.start_of(2) + 6)])
    kept = CachedBars()
    assert [one.back_units for one in kept.sales(read, MONTH)] == [0]
    written.execute("UPDATE payments SET state = 'refund_due' WHERE id = 1")
    assert [one.back_units for one in kept.sales(read, MONTH)] == [20_000]


def test_kept_sums_move_with_the_period(written, read):
    add_sale(written, Sale(at=MONTH.start_of(2) + 5))
    kept = CachedBars()
    kept.sales(read, MONTH)
    later = Period(since=MONTH.start_of(1), step_s=DAY_S, bars=30)
    (bar,) = kept.sales(read, later)
    assert (bar.bar, bar.taken_units) == (1, 20_000)
    after = Period(since=MONTH.start_of(3), step_s=DAY_S, bars=30)
    assert kept.sales(read, after) == []


def test_a_second_look_at_a_month_reads_what_is_new_only(written, read):
    written.execute("BEGIN")
    for number in range(3_000):
        sale = Sale(at=MONTH.since + number * 30 * DAY_S / 3_000, slug="a")
        add_sale(written, sale, number + 1)
    written.execute("COMMIT")
    kept = CachedBars()
    first = count_steps(read, lambda: kept.sales(read, MONTH))
    add_sale(written, Sale(at=MONTH.until - 1, slug="a"))
    again = count_steps(read, lambda: kept.sales(read, MONTH))
    # One of 30 days has changed.
    assert again < first / 10
    assert sum(one.sold for one in kept.sales(read, MONTH)) == 3_001
