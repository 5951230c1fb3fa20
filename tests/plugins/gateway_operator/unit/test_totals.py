"""Totals for metrics count each sale once, in whatever order sales become visible."""

import contextlib
import sqlite3

import pytest

from gateway.store.sqlite.migrations import migrate
from gateway_operator.sql import totals
from tests.operator_history import Sale, add_sale, add_sales

NOW = 1_782_172_800.0
LONG_AGO = NOW - 3600


@pytest.fixture
def db():
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        opened.row_factory = sqlite3.Row
        migrate(opened)
        yield opened


class Scraper:
    """Adds up reads, as the page of metrics does."""

    def __init__(self, db):
        self._db = db
        self._payments = self._tasks = self._sales = self._ended = 0

    def scrape(self):
        """Number of sales, and of ended tasks, in all reads together."""
        found = totals.read_totals(self._db, self._payments, self._tasks)
        self._payments, self._tasks = found.last_payment, found.last_task
        self._sales += sum(one.sales for one in found.final_sales)
        self._ended += sum(one.tasks for one in found.final_ended)
        return (
            self._sales + sum(one.sales for one in found.new_sales),
            self._ended + sum(one.tasks for one in found.new_ended),
        )


@pytest.mark.parametrize(
    ("newer", "counted"),
    [(Sale(at=NOW, status="queued", state="reserved"), 0), (Sale(at=NOW), 1)],
    ids=["open", "over"],
)
def test_a_sale_that_comes_after_one_with_a_higher_number_is_counted(db, newer, counted):
    # As on PostgreSQL, where the fourth transaction ends after the fifth.
    add_sales(db, [Sale(at=LONG_AGO)] * 3)
    add_sale(db, newer, number=5)
    scraper = Scraper(db)
    assert scraper.scrape() == (3 + counted, 3 + counted)
    add_sale(db, Sale(at=NOW), number=4)
    assert scraper.scrape() == (4 + counted, 4 + counted)
    assert scraper.scrape() == (4 + counted, 4 + counted)


def test_what_is_final_is_not_read_again(db):
    add_sales(db, [Sale(at=LONG_AGO)] * 3 + [Sale(at=NOW)])
    found = totals.read_totals(db, 0, 0)
    assert (found.last_payment, found.last_task) == (3, 3)
    again = totals.read_totals(db, found.last_payment, found.last_task)
    assert (again.final_sales, again.final_ended) == ([], [])
    assert [one.sales for one in again.new_sales] == [1]


def test_a_refund_that_the_operator_rejected_is_not_owed(db):
    add_sales(
        db,
        [
            Sale(at=NOW, status="failed", state="refund_failed", decision="rejected"),
            Sale(at=NOW, status="failed", state="refund_failed", decision="approved"),
            Sale(at=NOW, status="failed", state="refund_due"),
        ],
    )
    found = {one.state: one.count for one in totals.open_refunds(db)}
    assert found == {"refund_failed": 1, "refund_due": 1}
