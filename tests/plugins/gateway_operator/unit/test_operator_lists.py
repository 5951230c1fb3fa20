"""Lists of refunds, tasks and payments over 10,000 tasks read an index, not every row."""

import contextlib
import sqlite3
from functools import partial

import pytest

from gateway.store.sqlite.migrations import migrate
from gateway_operator.sql import (
    all_payments,
    payment_lists,
    refund_lists,
    task_detail,
    task_lists,
)
from gateway_operator.sql.all_payments import PaymentFilter
from gateway_operator.sql.task_lists import TaskFilter
from tests.sqlite_steps import count_steps

TASKS = 10_000
_READ_ALL = """SELECT count(*) FROM tasks t JOIN payments p ON p.id = t.payment_id
    WHERE length(t.request) > 0 AND length(p.payer) > 0"""

# A tenth failed and is owed; a tenth of these was refunded, and a tenth rejected.
_FILL = f"""
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {TASKS})
INSERT INTO payments (id, flow, state, request_hash, price_units, payer, authorization,
    search_from_block, paid_tx, paid_log_index, paid_units, payer_proven, created_at, updated_at)
SELECT i, 'x402', CASE WHEN i % 10 THEN 'settled' WHEN i % 100 = 0 THEN 'refunded'
    WHEN i % 100 = 50 THEN 'refund_failed' ELSE 'refund_due' END,
    printf('%064x', i), 20000, printf('0x%040x', i % 1000), '{{"valid_before": 2000}}', 1,
    printf('0x%064x', i), 0, 20000 + (i % 5000 = 7), 1, i, i FROM n;
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {TASKS})
INSERT INTO tasks (id, payment_id, slug, capability, status, request, due_at, result, code, error,
    details, handle, created_at, completed_at)
SELECT printf('task_%06d', i), i, CASE WHEN i % 500 THEN 'picture' ELSE 'paper' END,
    'text-to-image', CASE WHEN i % 10 THEN 'completed' ELSE 'failed' END, '{{"prompt": "a"}}', 0,
    CASE WHEN i % 10 THEN '{{}}' END, CASE WHEN i % 10 = 0 THEN 'GENERATION_FAILED' END, 'Failed.',
    CASE WHEN i % 10 = 0 THEN CASE WHEN i % 500 THEN 'provider_error' ELSE 'timed_out' END END,
    json_object('id', printf('job-%d', i), 'urls', json_object()), i, i + 2 FROM n;
INSERT INTO refunds (payment_id, amount_units, recipient, reason, decision, tx_hash, created_at,
    updated_at)
SELECT id, 20000, payer, 'provider_error', CASE WHEN id % 100 = 50 THEN 'rejected' END,
    CASE WHEN id % 100 = 0 THEN printf('0x%064x', id + 1000000) END, created_at, updated_at
FROM payments WHERE id % 10 = 0;
INSERT INTO payments (flow, state, request_hash, price_units, payer, authorization,
    search_from_block, created_at, updated_at)
VALUES ('x402', 'settling', 'x', 20000, '0xopen', '{{"valid_before": 99}}', 1, 50, 60);
INSERT INTO tasks (id, payment_id, slug, capability, status, request, due_at, created_at)
SELECT 'task_open', max(id), 'picture', 'text-to-image', 'held', '{{}}', 0, 200000 FROM payments;
"""


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    path = tmp_path_factory.mktemp("lists") / "gateway.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as opened:
        migrate(opened)
        opened.executescript(f"BEGIN; {_FILL} COMMIT;")
        opened.row_factory = sqlite3.Row
        yield opened


def quickly(function, *arguments, part=5, **named):
    """Result of a list that takes at most a fraction of the steps of a full read."""
    (db, *_) = arguments
    everything = count_steps(db, lambda: db.execute(_READ_ALL).fetchall())
    results = []
    steps = count_steps(db, lambda: results.append(function(*arguments, **named)))
    assert steps < everything / part
    return results[0]


def found(db, **wanted) -> list[str]:
    # Undecided refunds are owed: a tenth of all tasks here.
    part = 1.5 if wanted.get("state") == "owed" else 5
    rows = quickly(task_lists.find_tasks, db, TaskFilter(**wanted), 51, part=part)
    return [row.id for row in rows]


@pytest.mark.parametrize(
    ("wanted", "count", "newest"),
    [
        ({}, 51, "task_open"),
        ({"state": "completed"}, 51, "task_009999"),
        ({"state": "held"}, 1, "task_open"),
        ({"state": "dropped"}, 0, ""),
        ({"state": "owed"}, 51, "task_009990"),
        ({"state": "refunded"}, 51, "task_010000"),
        ({"slug": "paper"}, 20, "task_010000"),
        ({"slug": "picture", "state": "failed"}, 51, "task_009990"),
        ({"reason": "timed_out"}, 20, "task_010000"),
        ({"reason": "provider_error", "slug": "paper"}, 0, ""),
        ({"payer": "0x" + f"{7:040x}"}, 10, "task_009007"),
        ({"since": 500.0, "until": 510.0}, 10, "task_000509"),
        ({"search": "task_000123"}, 1, "task_000123"),
        ({"search": "job-77"}, 1, "task_000077"),
        ({"search": "0x" + f"{4711:064x}"}, 1, "task_004711"),
        ({"search": "0x" + f"{1000100:064x}"}, 1, "task_000100"),
        ({"search": "0x" + f"{7:040x}"}, 10, "task_009007"),
        ({"search": "nothing"}, 0, ""),
        ({"search": f"0x{4711:064x}"[:-1].upper().replace("X", "x")}, 16, "task_004719"),
        ({"search": f"0x{4711:064x}"[:64] + "…67"}, 1, "task_004711"),
        ({"search": "0x00…0007"}, 0, ""),
        ({"before": "task_000003"}, 2, "task_000002"),
        ({"before": "task_009000", "state": "failed"}, 51, "task_008990"),
        ({"before": "unknown"}, 0, ""),
    ],
)
def test_a_list_of_tasks_is_quick_whatever_it_is_filtered_by(db, wanted, count, newest):
    ids = found(db, **wanted)
    assert (len(ids), ids[0] if ids else "") == (count, newest)


def test_what_can_be_filtered_by_is_quickly_known(db):
    assert quickly(task_lists.choices, db) == (
        ["paper", "picture"],
        ["provider_error", "timed_out"],
    )


@pytest.mark.parametrize(
    ("kind", "count"),
    [("undecided", 51), ("moving", 0), ("paid", 51), ("rejected", 51), ("failed", 0)],
)
def test_a_list_of_refunds_is_quick_and_counts_as_it_lists(db, kind, count):
    find = partial(refund_lists.find_refunds, is_automatic=False)
    rows = quickly(find, db, kind, None, 51)
    assert len(rows) == count
    assert {row.kind for row in rows} <= {kind}
    if rows:
        older = quickly(find, db, kind, rows[-1].payment_id, 51)
        assert older[0].payment_id < rows[-1].payment_id


def test_counts_of_refunds_are_those_of_their_lists(db):
    counts = quickly(refund_lists.count_kinds, db, is_automatic=False, part=2)
    assert {kind: one.count for kind, one in counts.items()} == {
        "undecided": 800,
        "moving": 0,
        "paid": 100,
        "rejected": 100,
        "failed": 0,
    }
    assert counts["undecided"].units == 800 * 20_000
    # With automatic refunds, those of proven payers proceed without the operator.
    counts = refund_lists.count_kinds(db, is_automatic=True)
    assert (counts["undecided"].count, counts["moving"].count) == (0, 800)


def test_open_and_overpaid_payments_are_quickly_found(db):
    (row,) = quickly(payment_lists.open_payments, db, 50)
    assert (row.task_id, row.state, row.valid_before) == ("task_open", "settling", 99)
    over = quickly(payment_lists.overpaid_payments, db, 50)
    assert [row.task_id for row in over] == ["task_005007", "task_000007"]


def test_one_task_is_quickly_read(db):
    facts = quickly(task_detail.find_task, db, "task_000100")
    assert (facts.row.payment_state, facts.job_id) == ("refunded", "job-100")
    assert task_detail.find_task(db, "unknown") is None


@pytest.mark.parametrize(
    ("wanted", "count", "newest"),
    [
        ({}, 51, 10_001),
        ({"state": "settling"}, 1, 10_001),
        ({"state": "refunded", "before": 500}, 4, 400),
        ({"day": (500.0, 510.0)}, 10, 509),
        ({"payer": f"0x{7:040x}"}, 10, 9_007),
        ({"search": f"0x{4711:064x}"[:64] + "…67"}, 1, 4_711),
        ({"before": 3}, 2, 2),
    ],
)
def test_a_list_of_payments_is_quick_whatever_it_is_filtered_by(db, wanted, count, newest):
    rows = quickly(all_payments.find_payments, db, PaymentFilter(**wanted), 51)
    assert (len(rows), rows[0].payment_id) == (count, newest)


def test_sums_of_a_buyer_read_only_the_buyers_payments(db):
    groups = quickly(all_payments.sum_buyer, db, f"0X{7:040x}")
    assert [(one.state, one.payments) for one in groups] == [("settled", 10)]
    assert (groups[0].first_at, groups[0].last_at) == (7, 9_007)


def test_a_page_of_a_large_buyer_reads_no_more_than_a_page(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "gateway.db", isolation_level=None)) as db:
        migrate(db)
        db.executescript(f"BEGIN; {_FILL} UPDATE payments SET payer = '0xbig'; COMMIT;")
        db.row_factory = sqlite3.Row
        for wanted in ({}, {"state": "settled"}):
            page = PaymentFilter(payer="0xBig", before=5_000, **wanted)
            rows = quickly(all_payments.find_payments, db, page, 51, part=20)
            assert (len(rows), rows[0].payment_id) == (51, 4_999)
