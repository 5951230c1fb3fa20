"""A database of the release before webhooks: its tasks end without an event, new ones with one."""

import contextlib
import sqlite3

from gateway.domain import GenerationRequest
from gateway.store import SqliteStore
from gateway.store.sqlite.migrations import migrations
from gateway_testing.facts import NOW, RESULT, leased, tx_hash

_TASK = "00000000-0000-4000-8000-000000000001"
_REQUEST = """{"prompt": "x", "aspect_ratio": null, "output_format": null, "resolution": null,
    "pages": null, "file_name": null}"""


def _leave_a_queued_task(path) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        for number, sql in migrations()[:4]:
            db.executescript(f"BEGIN;{sql};PRAGMA user_version={number};COMMIT;")
        db.execute(
            """INSERT INTO payments (id, flow, state, request_hash, price_units, payer,
                   search_from_block, paid_tx, paid_log_index, paid_units, created_at, updated_at)
               VALUES (1, 'direct', 'settled', 'h', 20000, '0xp', 0, ?, 0, 20000, ?, ?)""",
            (tx_hash(99), NOW, NOW),
        )
        db.execute(
            """INSERT INTO tasks (id, payment_id, slug, capability, status, request, due_at,
                   created_at) VALUES (?, 1, 'picture', 'text-to-image', 'queued', ?, ?, ?)""",
            (_TASK, _REQUEST, NOW, NOW),
        )


async def test_old_tasks_end_without_an_event_and_new_ones_with_one(tmp_path):
    path = tmp_path / "gateway.db"
    _leave_a_queued_task(path)
    async with SqliteStore(path) as store:
        (old,) = await store.queue.claim(1, lease_s=60, now=NOW)
        assert (old.task_id, old.request) == (_TASK, GenerationRequest(prompt="x"))
        assert await store.queue.complete(old, RESULT, expires_at=NOW + 60, now=NOW)
        assert await store.webhooks.due(9, now=NOW) == []
        request = GenerationRequest(prompt="x", callback_url="https://buyer.example/")
        new = await leased(store, request=request)
        assert await store.queue.complete(new, RESULT, expires_at=NOW + 60, now=NOW)
        assert [event.task_id for event in await store.webhooks.due(9, now=NOW)] == [new.task_id]
