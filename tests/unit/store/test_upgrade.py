"""What an upgrade keeps, what it says before, and which databases a gateway may run on."""

import contextlib
import re
import shutil
import sqlite3

import pytest

from gateway.errors import SettingsError
from gateway.store import SqliteStore
from gateway.store.sqlite import upgrade
from gateway.store.sqlite.migrations import apply, migrations

NEWEST = migrations()[-1][0]
_FULL = shutil._ntuple_diskusage(10**9, 10**9 - 1000, 1000)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "gateway.db"


def _write(path, version, *more) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        for number, sql in migrations():
            if number <= version:
                apply(db, number, sql)
        db.execute("INSERT INTO meta (key, value) VALUES ('network', 'base')")
        for sql in more:
            db.execute(sql)


def _read(path, sql):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchone()[0]


async def _open_once(path) -> None:
    async with SqliteStore(path):
        pass


async def test_a_start_copies_an_older_database_before_it_migrates(path):
    _write(path, 5)
    await _open_once(path)
    copy = path.with_name(f"gateway.db.before-{NEWEST}")
    assert _read(copy, "PRAGMA user_version") == 5
    assert _read(copy, "SELECT value FROM meta WHERE key = 'network'") == "base"
    assert _read(path, "PRAGMA user_version") == NEWEST
    assert copy.stat().st_mode & 0o077 == 0


async def test_a_new_or_current_database_is_not_copied(path):
    await _open_once(path)
    await _open_once(path)
    assert not list(path.parent.glob("*before*"))


async def test_the_copy_of_a_second_upgrade_replaces_that_of_the_first(path):
    path.with_name(f"gateway.db.before-{NEWEST}").write_text("older")
    _write(path, 5)
    await _open_once(path)
    assert _read(path.with_name(f"gateway.db.before-{NEWEST}"), "PRAGMA user_version") == 5


async def test_without_room_for_the_copy_nothing_is_changed(path, monkeypatch):
    _write(path, 5)
    monkeypatch.setattr(upgrade.shutil, "disk_usage", lambda _: _FULL)
    with pytest.raises(SettingsError, match="needs 5 MB, but only 0 MB are free"):
        await _open_once(path)
    assert _read(path, "PRAGMA user_version") == 5
    assert not list(path.parent.glob("*before*"))


async def test_a_disk_that_fails_under_the_copy_stops_the_start_and_leaves_no_half_of_it(
    path, monkeypatch
):
    def fail(db, target):
        target.write_bytes(b"half")
        raise sqlite3.OperationalError("database or disk is full")

    _write(path, 5)
    monkeypatch.setattr(upgrade, "write_copy", fail)
    with pytest.raises(SettingsError, match="disk is full"):
        await _open_once(path)
    assert _read(path, "PRAGMA user_version") == 5
    assert not list(path.parent.glob("*before*"))


# -- newer databases


def _make_newer(path, readable_by) -> None:
    _write(
        path,
        NEWEST,
        f"UPDATE meta SET value = '{readable_by}' WHERE key = 'readable_by'",
        f"PRAGMA user_version = {NEWEST + 1}",
    )


async def test_a_newer_database_that_this_gateway_may_run_on_opens_and_stays_as_it_is(path):
    _make_newer(path, NEWEST)
    await _open_once(path)
    assert _read(path, "PRAGMA user_version") == NEWEST + 1
    assert not list(path.parent.glob("*before*"))


async def test_a_newer_database_that_says_no_is_refused_with_the_way_back(path):
    _make_newer(path, NEWEST + 1)
    with pytest.raises(SettingsError, match=rf"put back the copy gateway\.db\.before-{NEWEST + 1}"):
        await _open_once(path)


def test_every_migration_says_which_gateways_can_read_what_it_leaves():
    """One that forgets would let an older gateway run on what it does not understand."""
    for number, sql in migrations():
        if number > 5:
            assert re.search(r"INSERT INTO meta .*'readable_by', '\d+'", sql), number


# -- the plan


def test_the_plan_names_what_is_added_and_changes_nothing(path):
    _write(path, 5)
    plan = upgrade.plan(path)
    assert (plan.version, plan.target, plan.removed) == (5, NEWEST, ())
    assert {"table alarms", "column tasks.provider", "index tasks_created"} <= set(plan.added)
    assert not any(name.startswith("column alarms.") for name in plan.added)
    assert plan.readable_by == 5
    assert _read(path, "PRAGMA user_version") == 5


def test_the_plan_names_what_is_removed(path):
    _write(path, 1)
    assert "table signers" in upgrade.plan(path).removed


def test_the_plan_of_a_current_database_is_empty(path):
    _write(path, NEWEST)
    plan = upgrade.plan(path)
    assert (plan.added, plan.removed, plan.target) == ((), (), NEWEST)
