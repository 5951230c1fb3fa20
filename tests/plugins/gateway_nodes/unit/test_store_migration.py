"""Nothing sells from a database file that was, or is being, migrated to another database."""

import contextlib
import sqlite3

import pytest

from gateway.errors import SettingsError
from gateway.store import SqliteStore
from gateway.store.sqlite.migrations import StoreMigration, migration_of, readable_by_of, version_of
from gateway_backups import sqlite as backup
from gateway_nodes.store_migration import notes, steps
from gateway_testing.facts import leased

ADDRESS = "postgresql://gateway:hunter2@db.example.com:5432/shop?password=hunter2"
TARGET = "postgresql://db.example.com:5432/shop"


@pytest.fixture
async def path(settings):
    """The file of a gateway that has sold."""
    path = settings.data_dir / "gateway.db"
    async with SqliteStore(path) as store:
        await leased(store, tx=1, id="task-1")
    return path


@contextlib.contextmanager
def begun(path, *, is_done=False):
    migration = StoreMigration(id="1", target=notes.shown(ADDRESS), is_done=False)
    with steps.open_source(path) as db:
        notes.begin(db, migration)
        if is_done:
            notes.finish(db)
        yield db


async def open_once(path):
    async with SqliteStore(path):
        pass


def rows(path, sql):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchall()


async def test_a_file_whose_move_has_begun_is_not_opened(path):
    with begun(path):
        pass
    with pytest.raises(SettingsError, match=f"A migration of this database to {TARGET} has begun"):
        await open_once(path)


async def test_a_moved_file_is_not_opened_and_tells_where_to(path):
    with begun(path, is_done=True) as db:
        assert migration_of(db) == StoreMigration(id="1", target=TARGET, is_done=True)
    with pytest.raises(SettingsError, match=f"was migrated to {TARGET}"):
        await open_once(path)
    assert b"hunter2" not in path.read_bytes()


async def test_a_release_that_knows_no_moves_refuses_the_file(path):
    with begun(path) as db:
        newest = 7
        assert version_of(db) > newest
        assert readable_by_of(db) > newest


async def test_what_had_the_file_open_writes_no_more(path):
    with contextlib.closing(sqlite3.connect(path)) as other:
        with begun(path):
            pass
        for sql in (
            "INSERT INTO claims (key, payment_id) VALUES ('tx:2', 1)",
            "UPDATE tasks SET attempt = 9",
            "DELETE FROM payment_events",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="the database was migrated"):
                other.execute(sql)


async def test_a_move_that_is_taken_back_leaves_the_file_as_it_was(path):
    before = [rows(path, f"SELECT * FROM {name}") for name in ("meta", "sqlite_master")]
    version = rows(path, "PRAGMA user_version")
    with begun(path) as db:
        notes.take_back(db)
    assert [rows(path, f"SELECT * FROM {name}") for name in ("meta", "sqlite_master")] == before
    assert rows(path, "PRAGMA user_version") == version
    async with SqliteStore(path) as store:
        await leased(store, tx=2, id="task-2")


@pytest.mark.parametrize("is_done", [False, True])
async def test_no_copy_takes_the_place_of_a_moved_file(path, settings, tmp_path, is_done):
    copy = tmp_path / "copy.db"
    backup.back_up(settings, copy)
    with begun(path, is_done=is_done):
        pass
    with pytest.raises(SettingsError, match="database"):
        backup.restore(settings, copy, now=1.0)
    assert rows(path, "SELECT value FROM meta WHERE key LIKE 'mov%to'") == [(TARGET,)]


async def test_a_copy_of_a_moved_file_is_not_restored(path, settings, tmp_path):
    copy = tmp_path / "copy.db"
    with begun(path, is_done=True):
        pass
    backup.back_up(settings, copy)
    path.unlink()
    with pytest.raises(SettingsError, match="was migrated"):
        backup.restore(settings, copy, now=1.0)
    assert not path.exists()
