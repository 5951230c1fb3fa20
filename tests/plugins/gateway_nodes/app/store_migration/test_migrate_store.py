"""`gateway migrate-store`: everything is in PostgreSQL afterwards, and only one database sells."""

import asyncio
import contextlib
import sqlite3

import psycopg
import pytest

from gateway.errors import SettingsError, TxAlreadyUsed
from gateway.store import SqliteStore
from gateway.store.data_folder import lock_data
from gateway.store.sqlite.migrations import migration_of
from gateway_bucket.outputs import BucketOutputs
from gateway_nodes.postgres.store import PostgresStore
from gateway_nodes.store_migration import copying, notes
from gateway_nodes.store_migration.target import open_target
from gateway_testing.facts import NOW, leased, new_task, paying, transfer
from tests.conftest import PNG
from tests.gateway.postgres.lossy_proxy import lossy_proxy
from tests.plugins.gateway_nodes.app.store_migration.conftest import SECRET


def rows_here(path):
    """Return every row of the file, by table, without its notes about itself."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        names = [
            name
            for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if not name.startswith("sqlite") and name != "plugin_schemas"
        ]
        found = {}
        for name in names:
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({name})")]
            rows = db.execute(f"SELECT {_listed(columns)} FROM {name}").fetchall()
            found[name] = (columns, sorted(map(repr, _comparable(name, rows))))
    return found


def rows_there(database_url, tables):
    with psycopg.connect(database_url) as db:
        return {
            name: (
                columns,
                sorted(
                    repr(row)
                    for row in _comparable(
                        name, db.execute(f"SELECT {_listed(columns)} FROM {name}")
                    )
                ),
            )
            for name, (columns, _) in tables.items()
        }


def _listed(columns):
    return ", ".join(f'"{column}"' for column in columns)


def _comparable(name, rows):
    """Leave out rows that concern only one of the two databases."""
    own = {"readable_by", "schema_base", "moved_from", "moved_to", "moving_to", "move_id"}
    return [
        row
        for row in rows
        if name != "meta" or not (row[0] in own or row[0].endswith("_before_move"))
    ]


def assert_same(path, database_url):
    """Every row of the file is in PostgreSQL, and no other."""
    here = rows_here(path)
    assert rows_there(database_url, here) == here


def move_in(path):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return migration_of(db)


async def open_file(path):
    async with SqliteStore(path):
        pass


def test_every_row_is_there_and_the_file_is_left(run, path, database_url):
    before = rows_here(path)
    result = run()
    assert result.exit_code == 0, result.output
    after = rows_here(path)
    assert rows_there(database_url, after) == after
    # The copied output has another place in its task.
    assert {**after, "tasks": None} == {**before, "tasks": None}
    assert "payments" in result.output
    assert "66" in result.output
    with pytest.raises(SettingsError, match="was migrated to"):
        asyncio.run(open_file(path))


async def test_what_was_spent_stays_spent_and_what_was_open_goes_on(run, path, database_url):
    assert (await asyncio.to_thread(run)).exit_code == 0
    async with PostgresStore(database_url) as store:
        with pytest.raises(TxAlreadyUsed):
            await store.accept_direct(new_task(), transfer(900).tx_hash, [transfer(900)], None)
        task = await store.task("task-reserved")
        assert await store.settle(task.payment.id, paying(task, tx=901), now=NOW)
        fresh = await store.accept_direct(new_task(), transfer(902).tx_hash, [transfer(902)], None)
        assert fresh.payment.id > task.payment.id
        with psycopg.connect(database_url) as db:
            events = db.execute(
                "SELECT old_state, new_state FROM payment_events WHERE payment_id = %s ORDER BY id",
                (task.payment.id,),
            ).fetchall()
    assert events == [(None, "reserved"), ("reserved", "settled")]


def test_a_database_that_is_not_empty_is_refused_and_the_file_sells_on(run, path, database_url):
    assert run().exit_code == 0
    other = path.with_name("other")
    other.mkdir()
    asyncio.run(_sell_once(other / "gateway.db"))
    result = run(GATEWAY_DATA_DIR=str(other))
    assert (result.exit_code, "is not empty" in result.output) == (1, True), result.output
    asyncio.run(open_file(other / "gateway.db"))


async def _sell_once(path):
    async with SqliteStore(path) as store:
        await store.meta("network", lambda: "base")
        await leased(store, tx=1)


def test_a_gateway_that_runs_is_not_moved(run, path, settings):
    lock = lock_data(settings)
    result = run()
    lock.close()
    assert (result.exit_code, "Another gateway uses" in result.output) == (1, True)
    assert move_in(path) is None


def test_a_check_says_what_would_be_moved_and_moves_nothing(run, path, database_url):
    result = run("--check")
    assert result.exit_code == 0, result.output
    assert "payments" in result.output
    assert "1 outputs on this machine's disk will be copied" in result.output
    assert "no tables yet" in result.output
    assert move_in(path) is None
    with psycopg.connect(database_url) as db:
        assert db.execute("SELECT to_regclass('payments')").fetchone() == (None,)
    asyncio.run(open_file(path))


async def test_outputs_on_the_disk_are_in_the_bucket_afterwards(
    run, path, settings, bucket, database_url
):
    result = await asyncio.to_thread(run)
    assert "Copied 1 outputs" in result.output
    async with PostgresStore(database_url) as store:
        (output,) = (await store.task("task-done")).result.outputs
    assert await BucketOutputs(bucket, SECRET).read(output) == PNG


def test_a_user_without_privileges_is_enough(run, path, postgres_server, database_url):
    name = psycopg.conninfo.conninfo_to_dict(database_url)["dbname"]
    with psycopg.connect(database_url, autocommit=True) as db:
        db.execute("DROP ROLE IF EXISTS plain")
        db.execute("CREATE ROLE plain LOGIN NOSUPERUSER")
        db.execute(f"ALTER DATABASE {name} OWNER TO plain")
    try:
        result = run("--to", database_url.replace("gateway@", "plain@"))
        assert result.exit_code == 0, result.output
        assert_same(path, database_url)
    finally:
        with psycopg.connect(database_url, autocommit=True) as db:
            db.execute("REASSIGN OWNED BY plain TO gateway")
            db.execute("DROP ROLE plain")


def test_a_node_that_starts_meanwhile_writes_nothing_of_its_own(
    run, path, database_url, monkeypatch
):
    compare, refused = copying._compare, []

    def try_to_start(*arguments):
        with psycopg.connect(database_url) as node:
            node.execute("SET lock_timeout = 100")
            try:
                node.execute("INSERT INTO meta (key, value) VALUES ('file_secret', 'another')")
            except psycopg.errors.LockNotAvailable as error:
                refused.append(error)
        compare(*arguments)

    monkeypatch.setattr(copying, "_compare", try_to_start)
    assert run().exit_code == 0
    assert refused


def test_without_a_bucket_nothing_is_moved(run, path):
    result = run(GATEWAY_OUTPUTS_URL="")
    assert (result.exit_code, "GATEWAY_OUTPUTS_URL" in result.output) == (1, True)
    asyncio.run(open_file(path))


def test_no_password_is_shown_or_kept(run, path):
    address = "postgresql://somebody:hunter2@127.0.0.1:9/gateway"
    result = run("--to", address)
    assert result.exit_code == 1
    assert "hunter2" not in result.output
    assert "127.0.0.1:9" in result.output


@pytest.mark.parametrize(
    "address", ["mysql://gateway:hunter2@db/gateway", "postgresql://gateway:hunter2%zz@db/gateway"]
)
def test_what_is_no_address_is_refused_without_repeating_it(run, path, address):
    result = run("--to", address)
    assert (result.exit_code, "no address of a PostgreSQL" in result.output) == (1, True)
    assert "hunter2" not in result.output


# -- killed between two steps


class Killed(BaseException):
    """The process dies here."""


def die(*_):
    raise Killed


def test_killed_before_the_commit_it_starts_anew(run, path, database_url, monkeypatch):
    with monkeypatch.context() as patched:
        # A killed process undoes nothing.
        patched.setattr(notes, "take_back", lambda _: None)
        patched.setattr(copying, "_compare", die)
        with pytest.raises(Killed):
            run()
    with pytest.raises(SettingsError, match="has begun and not ended"):
        asyncio.run(open_file(path))
    assert run().exit_code == 0
    assert_same(path, database_url)


def test_killed_after_the_commit_it_is_ended_without_a_second_copy(
    run, path, database_url, monkeypatch
):
    with monkeypatch.context() as patched:
        patched.setattr(notes, "finish", die)
        with pytest.raises(Killed):
            run()
    with pytest.raises(SettingsError, match="has begun and not ended"):
        asyncio.run(open_file(path))
    refused = run("--take-back")
    assert (refused.exit_code, "has everything already" in refused.output) == (1, True)
    assert "An earlier run had copied everything" in run().output
    assert_same(path, database_url)
    assert move_in(path).is_done


@pytest.mark.parametrize("reaches_server", [True, False])
async def test_a_commit_without_an_answer_is_looked_up_by_the_next_run(
    run, path, postgres_server, database_url, monkeypatch, reaches_server
):
    async with lossy_proxy(postgres_server, reaches_server=reaches_server) as proxy:
        address = proxy.lead_to(database_url)
        copy = copying.copy

        def lose_the_next_commit(*arguments):
            copied = copy(*arguments)
            proxy.losses = 1
            return copied

        monkeypatch.setattr(copying, "copy", lose_the_next_commit)
        result = await asyncio.to_thread(run, "--to", address)
        assert (result.exit_code, proxy.losses) == (1, 0), result.output
        with pytest.raises(SettingsError, match="has begun and not ended"):
            await open_file(path)
        monkeypatch.setattr(copying, "copy", copy)
        result = await asyncio.to_thread(run, "--to", address)
        assert result.exit_code == 0
        assert ("An earlier run" in result.output) == reaches_server
    assert_same(path, database_url)


def test_a_move_that_was_cut_off_before_the_commit_is_taken_back(
    run, path, database_url, monkeypatch
):
    with monkeypatch.context() as patched:
        patched.setattr(notes, "take_back", lambda _: None)
        patched.setattr(copying, "_compare", die)
        with pytest.raises(Killed):
            run()
    assert run("--take-back").exit_code == 0
    asyncio.run(open_file(path))


def test_a_move_to_one_database_is_not_ended_on_another(run, path, postgres_server, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(notes, "finish", die)
        with pytest.raises(Killed):
            run()
    result = run("--to", postgres_server.address_of("postgres"))
    assert (result.exit_code, "Name that database" in result.output) == (1, True), result.output
    assert not move_in(path).is_done


def test_a_copy_that_is_not_the_same_is_not_committed(run, path, database_url):
    with open_target(database_url) as target:
        target.prepare()
    with psycopg.connect(database_url, autocommit=True) as db:
        # Four bytes are too few for a time.
        db.execute("ALTER TABLE payment_events ALTER COLUMN at TYPE REAL")
    result = run()
    assert (result.exit_code, "not the same after the copy" in result.output) == (1, True), (
        result.output
    )
    with psycopg.connect(database_url) as db:
        assert db.execute("SELECT count(*) FROM payments").fetchone() == (0,)
    asyncio.run(open_file(path))


def test_a_character_that_postgresql_cannot_store_is_left_out_and_told(run, path, database_url):
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE tasks SET error = 'a' || char(0) || 'b' WHERE id = 'task-leased'")
    result = run()
    assert "1 texts lost a NUL character" in result.output
    with psycopg.connect(database_url) as db:
        sql = "SELECT error FROM tasks WHERE id = 'task-leased'"
        assert db.execute(sql).fetchone() == ("ab",)
