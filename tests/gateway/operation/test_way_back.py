"""An older gateway on a newer database that only adds: it sells, and the newer one goes on."""

import asyncio
import contextlib
import sqlite3

from gateway.domain import PaymentState
from gateway.store import SqliteStore
from gateway.store.rows import PAYMENT_COLUMNS, payment_of
from gateway.store.sqlite import migrations
from tests.conftest import Payer, buy, running
from tests.operator_history import add_method_sale

NEWEST, _ = migrations.migrations()[-1]
# What the next release may do: add tables, columns, indexes and triggers.
_NEXT = f"""
    CREATE TABLE added (id INTEGER PRIMARY KEY, task_id TEXT REFERENCES tasks (id)) STRICT;
    ALTER TABLE tasks ADD COLUMN added TEXT;
    ALTER TABLE payments ADD COLUMN added INTEGER NOT NULL DEFAULT 7;
    ALTER TABLE backups ADD COLUMN added TEXT;
    CREATE INDEX tasks_added ON tasks (added) WHERE added IS NOT NULL;
    CREATE TRIGGER tasks_are_noted AFTER INSERT ON tasks
    BEGIN
        INSERT INTO added (task_id) VALUES (new.id);
    END;
    INSERT INTO meta (key, value) VALUES ('readable_by', '{NEWEST}')
    ON CONFLICT (key) DO UPDATE SET value = excluded.value;
"""


async def _buy_many(gateway, payers) -> list[dict]:
    answers = await asyncio.gather(*(buy(gateway, payer.header()) for payer in payers))
    told = [await answer.get_json() for answer in answers]
    return [await gateway.wait(task["taskId"]) for task in told]


async def test_after_an_upgrade_the_release_before_sells_on_and_the_newer_one_goes_on(
    settings, provider, chain, monkeypatch
):
    payers = [Payer(chain) for _ in range(6)]
    async with running(settings, provider) as before:
        tasks = await _buy_many(before, payers)
    released = migrations.migrations()
    with monkeypatch.context() as newer:
        newer.setattr(migrations, "migrations", lambda: [*released, (NEWEST + 1, _NEXT)])
        async with running(settings, provider) as gateway:
            tasks += await _buy_many(gateway, payers)
    # fly deploy --image OLD
    async with running(settings, provider) as older:
        tasks += await _buy_many(older, payers)
        assert await older.services.store.task(tasks[0]["taskId"]) is not None
    with monkeypatch.context() as newer:
        newer.setattr(migrations, "migrations", lambda: [*released, (NEWEST + 1, _NEXT)])
        async with running(settings, provider) as gateway:
            tasks += await _buy_many(gateway, payers)
    assert {task["status"] for task in tasks} == {"completed"}
    with contextlib.closing(sqlite3.connect(settings.data_dir / "gateway.db")) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (NEWEST + 1,)
        assert db.execute("SELECT count(*) FROM tasks").fetchone() == (24,)
        # The newer schema's trigger ran for the older gateway's tasks, too.
        assert db.execute("SELECT count(*) FROM added").fetchone() == (18,)
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert (settings.data_dir / f"gateway.db.before-{NEWEST + 1}").exists()


async def _open_payments_before_0007(store):
    """Return what the release before takes for payments that only the chain can close."""
    rows = await store._rows(
        f"""SELECT {PAYMENT_COLUMNS} FROM payments p
            WHERE p.state IN ('reserved', 'settling') ORDER BY p.id"""
    )
    return [payment_of(row) for row in rows]


async def test_the_release_before_sells_on_and_leaves_payments_by_methods_as_they_are(
    settings, provider, chain, clock, monkeypatch
):
    states = ("reserved", "settling", "released", "settled", "refund_due")
    async with running(settings, provider, now=clock) as gateway:
        for state in map(PaymentState, states):
            await gateway.services.store._write(
                lambda db, state=state: add_method_sale(db, at=clock(), state=state, serial=state)
            )
    released = [one for one in migrations.migrations() if one[0] < 7]
    with monkeypatch.context() as older:
        older.setattr(migrations, "migrations", lambda: released)
        older.setattr(SqliteStore, "open_payments", _open_payments_before_0007)
        async with running(settings, provider, now=clock) as gateway:
            await gateway.services.settlements._sweep()
            (task,) = await _buy_many(gateway, [Payer(chain)])
            assert task["status"] == "completed"
            assert len(await gateway.services.store.open_payments()) == 2
    async with running(settings, provider, now=clock) as gateway:
        store = gateway.services.store
        kept = [(await store.task(f"task_{state}")).payment.state for state in states]
        assert kept == list(states)
        assert len(await store.methods.open_payments()) == 2
