"""A queue that the release before jobs has left behind: what it may have sent is not sent again."""

import json
import sqlite3

import pytest

from gateway.store.sqlite.migrations import migrations
from gateway_testing.facts import tx_hash
from tests.unit.tasks.engine_shop import PlainApi, opened

LEASE = "T" * 32
LEFT = {  # status, lease, attempts so far
    "waiting": ("queued", None, 0),
    "between attempts": ("processing", None, 1),
    "killed": ("processing", LEASE, 1),
}
REQUEST = {"prompt": "x"} | dict.fromkeys(
    ("aspect_ratio", "output_format", "resolution", "file_name")
)


def _insert(db, table, **row):
    columns, marks = ", ".join(row), ", ".join("?" * len(row))
    db.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", tuple(row.values()))


def _add(db, number, status, lease, attempt, now):
    """Write one paid task as that release did; returns its name."""
    task_id = f"00000000-0000-4000-8000-{number:012d}"
    times = {"created_at": now, "updated_at": now}
    payment = {"id": number, "flow": "direct", "state": "settled", "request_hash": "h"}
    payment |= {"price_units": 20_000, "payer": "0xp", "search_from_block": 0}
    payment |= {"paid_tx": tx_hash(number), "paid_log_index": 0, "paid_units": 20_000}
    _insert(db, "payments", **payment, **times)
    task = {"id": task_id, "payment_id": number, "slug": "paper", "request": json.dumps(REQUEST)}
    task |= {"capability": "document-parsing", "status": status, "attempt": attempt}
    task |= {"due_at": now + 60 if lease else now, "lease_token": lease, "created_at": now}
    _insert(db, "tasks", **task, started_at=now if attempt else None)
    return task_id


@pytest.fixture
def left(tmp_path, clock):
    """The tasks in a database of schema 2."""
    db = sqlite3.connect(tmp_path / "gateway.db", isolation_level=None)
    for number, sql in migrations()[:2]:
        db.executescript(f"BEGIN;{sql};PRAGMA user_version={number};COMMIT;")
    now = clock() - 10
    tasks = {
        name: _add(db, number, *facts, now) for number, (name, facts) in enumerate(LEFT.items(), 1)
    }
    db.close()
    return tasks


async def test_what_the_release_before_was_sending_when_killed_is_not_sent_again(
    tmp_path, clock, left
):
    api = PlainApi()
    async with opened(tmp_path, api, clock) as shop:
        tasks = {name: await shop.ended(one) for name, one in left.items()}
    assert (tasks["killed"].status, tasks["killed"].details) == ("failed", "uncertain_submit")
    assert tasks["killed"].payment.state == "refund_due"
    assert tasks["waiting"].status == tasks["between attempts"].status == "completed"
    assert sorted(api.submits) == [left["waiting"], left["between attempts"]]


async def test_what_bills_nothing_is_done_again_after_an_upgrade(tmp_path, clock, left):
    async with opened(tmp_path, PlainApi(idempotent_submit=True), clock) as shop:
        assert {(await shop.ended(one)).status for one in left.values()} == {"completed"}
