"""An older gateway on a newer, purely extended database: it sells, and the newer one continues."""

import asyncio
import contextlib
import sqlite3

from gateway.store.sqlite import migrations
from tests.conftest import Payer, buy, running

NEWEST, _ = migrations.migrations()[-1]
# Allowed changes of the next release: new tables, columns, indexes and triggers.
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
    bodies = [await answer.get_json() for answer in answers]
    return [await gateway.wait(task["taskId"]) for task in bodies]


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
