"""An upgrade: the data it keeps, its messages before, and the databases a gateway may run on."""

import contextlib
import re
import shutil
import sqlite3

import pytest

from gateway.errors import SettingsError
from gateway.store import SqliteStore
from gateway.store.sqlite import migrations, upgrade
from gateway_nodes.postgres import migrations as on_postgres

NEWEST = migrations.migrations()[-1][0]
_NEXT = NEWEST + 1
_ADDS = """
    CREATE TABLE added (id INTEGER PRIMARY KEY, note TEXT) STRICT;
    ALTER TABLE tasks ADD COLUMN added TEXT;
    CREATE INDEX tasks_added ON tasks (added);
"""
_FULL = shutil._ntuple_diskusage(10**9, 10**9 - 1000, 1000)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "gateway.db"


@pytest.fixture
def next_release(monkeypatch):
    """Give the gateway one more migration, like the next release."""
    present = migrations.migrations()

    def become(sql=_ADDS):
        monkeypatch.setattr(migrations, "migrations", lambda: [*present, (_NEXT, sql)])

    return become


@pytest.mark.parametrize("migrations_of", [migrations.migrations, on_postgres.migrations])
def test_no_number_of_a_migration_is_missing(migrations_of):
    # A file that comes after one with a higher number would never be applied.
    numbers = [number for number, _ in migrations_of()]
    assert numbers == list(range(1, NEWEST + 1))


def _write(path, *more) -> None:
    """Write a database of the current release."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        migrations.migrate(db)
        db.execute("INSERT INTO meta (key, value) VALUES ('network', 'base')")
        for sql in more:
            db.execute(sql)


def _read(path, sql):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchone()[0]


async def _open_once(path) -> None:
    async with SqliteStore(path):
        pass


async def test_a_start_copies_an_older_database_before_it_migrates(path, next_release):
    _write(path)
    next_release()
    await _open_once(path)
    copy = path.with_name(f"gateway.db.before-{_NEXT}")
    assert _read(copy, "PRAGMA user_version") == NEWEST
    assert _read(copy, "SELECT value FROM meta WHERE key = 'network'") == "base"
    assert _read(path, "PRAGMA user_version") == _NEXT
    assert copy.stat().st_mode & 0o077 == 0


async def test_a_new_or_current_database_is_not_copied(path):
    await _open_once(path)
    await _open_once(path)
    assert not list(path.parent.glob("*before*"))


async def test_the_copy_of_a_second_upgrade_replaces_that_of_the_first(path, next_release):
    path.with_name(f"gateway.db.before-{_NEXT}").write_text("older")
    _write(path)
    next_release()
    await _open_once(path)
    assert _read(path.with_name(f"gateway.db.before-{_NEXT}"), "PRAGMA user_version") == NEWEST


async def test_without_room_for_the_copy_nothing_is_changed(path, next_release, monkeypatch):
    _write(path)
    next_release()
    monkeypatch.setattr(upgrade.shutil, "disk_usage", lambda _: _FULL)
    with pytest.raises(SettingsError, match="needs 5 MB, but only 0 MB are free"):
        await _open_once(path)
    assert _read(path, "PRAGMA user_version") == NEWEST
    assert not list(path.parent.glob("*before*"))


async def test_a_disk_that_fails_under_the_copy_stops_the_start_and_leaves_no_half_of_it(
    path, next_release, monkeypatch
):
    def fail(db, target):
        target.write_bytes(b"half")
        raise sqlite3.OperationalError("database or disk is full")

    _write(path)
    next_release()
    monkeypatch.setattr(upgrade, "write_copy", fail)
    with pytest.raises(SettingsError, match="disk is full"):
        await _open_once(path)
    assert _read(path, "PRAGMA user_version") == NEWEST
    assert not list(path.parent.glob("*before*"))


# -- newer databases


def _make_newer(path, readable_by) -> None:
    _write(
        path,
        f"UPDATE meta SET value = '{readable_by}' WHERE key = 'readable_by'",
        f"PRAGMA user_version = {_NEXT}",
    )


async def test_a_newer_database_that_this_gateway_may_run_on_opens_and_stays_as_it_is(path):
    _make_newer(path, NEWEST)
    await _open_once(path)
    assert _read(path, "PRAGMA user_version") == _NEXT
    assert not list(path.parent.glob("*before*"))


async def test_a_newer_database_that_says_no_is_refused_with_the_way_back(path):
    _make_newer(path, _NEXT)
    with pytest.raises(SettingsError, match=rf"restore the copy gateway\.db\.before-{_NEXT}"):
        await _open_once(path)


def test_every_migration_says_which_gateways_can_read_what_it_leaves():
    """Without that, an older gateway could run on a schema that it does not understand."""
    for number, sql in migrations.migrations():
        assert re.search(r"INSERT INTO meta .*'readable_by', '\d+'", sql), number


# -- databases of development versions


@pytest.mark.parametrize(("version", "readable_by"), [(NEWEST, None), (5, None), (11, "5")])
async def test_a_database_of_a_development_version_is_refused_and_stays_as_it_is(
    path, version, readable_by
):
    _write(
        path,
        "DELETE FROM meta WHERE key IN ('schema_base', 'readable_by')",
        f"INSERT INTO meta SELECT 'readable_by', '{readable_by}' WHERE '{readable_by}' <> 'None'",
        f"PRAGMA user_version = {version}",
    )
    with pytest.raises(SettingsError, match=rf"\(version {version}\) is from a development"):
        await _open_once(path)
    with pytest.raises(SettingsError, match="development version"):
        upgrade.plan(path)
    assert _read(path, "PRAGMA user_version") == version
    assert _read(path, "SELECT count(*) FROM meta WHERE key = 'schema_base'") == 0
    assert not list(path.parent.glob("*before*"))


async def test_a_database_of_another_program_is_refused(path):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript("CREATE TABLE songs (name TEXT); PRAGMA user_version = 3;")
    with pytest.raises(SettingsError, match=r"version 3.*another program"):
        await _open_once(path)


# -- the plan


def test_the_plan_names_what_is_added_and_changes_nothing(path, next_release):
    _write(path)
    next_release()
    plan = upgrade.plan(path)
    assert (plan.version, plan.target, plan.removed) == (NEWEST, _NEXT, ())
    assert plan.added == ("column tasks.added", "index tasks_added", "table added")
    assert plan.readable_by == 1  # as the newest file states
    assert _read(path, "PRAGMA user_version") == NEWEST


def test_the_plan_names_what_is_removed(path, next_release):
    _write(path)
    next_release("DROP TABLE lifted_payers; DROP INDEX tasks_status;")
    assert upgrade.plan(path).removed == ("index tasks_status", "table lifted_payers")


def test_the_plan_of_a_current_database_is_empty(path):
    _write(path)
    plan = upgrade.plan(path)
    assert (plan.added, plan.removed, plan.target) == ((), (), NEWEST)
