"""A restore killed at any step, and data that a restored copy must not bring back."""

import asyncio
import contextlib
import itertools
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.settings import variable
from gateway.store.sqlite.migrations import migrate
from gateway_backups.restoring import restore_once
from tests.conftest import running
from tests.plugins.gateway_operator.app.operator import log_in

NAMES = ("base_url", "wallet", "data_dir", "settlement_key")
ROWS = 2_000
# Restores once for each number that it reads, in a process that kills itself just before it renames
# in the data folder for the n-th time; prints each exit code.
KILLED = """
import os, signal, sys
import gateway_backups.restoring
from gateway.cli import main
left, folder, copy = 0, *sys.argv[1:]
def count(event, arguments):
    global left
    if event not in ("os.link", "os.rename", "os.remove"):
        return
    path = os.fspath(arguments[0])
    if str(path).startswith(folder) and os.path.exists(path):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(count)
for line in sys.stdin:
    left = int(line)
    if os.fork() == 0:
        main(["restore", copy])
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""


@pytest.fixture
def env(settings):
    found = {variable(name): str(getattr(settings, name)) for name in NAMES}
    return found | {"GATEWAY_RPC_URLS": ",".join(settings.rpc_urls)}


def _fill(path, word, network) -> sqlite3.Connection:
    """Write a database with rows of one word; the second half is only in its write-ahead log."""
    db = sqlite3.connect(path, isolation_level=None)
    migrate(db)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA wal_autocheckpoint = 0")
    db.execute("INSERT INTO meta VALUES ('network', ?)", (network,))
    add = "INSERT INTO meta VALUES (?, ?)"
    db.executemany(add, ((f"{word} {n}", word * 20) for n in range(ROWS // 2)))
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.executemany(add, ((f"{word} {n}", word * 20) for n in range(ROWS // 2, ROWS)))
    return db


def _like_a_killed_gateways(folder, network) -> None:
    """Leave a database like a killed gateway: with a write-ahead log."""
    shutil.rmtree(folder)
    folder.mkdir()
    made = folder / "made"
    with contextlib.closing(_fill(made, "old", network)):
        shutil.copy(made, folder / "gateway.db")
        shutil.copy(f"{made}-wal", folder / "gateway.db-wal")
    made.unlink()


@contextlib.contextmanager
def _read(folder):
    """Read the database like Litestream: its write-ahead log then stays until the end."""
    with contextlib.closing(sqlite3.connect(folder / "gateway.db", isolation_level=None)) as db:
        db.execute("BEGIN")
        db.execute("SELECT count(*) FROM meta").fetchone()
        yield


def _holds(path, word) -> bool:
    """Whether a database is whole and has all rows of a word."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        count = "SELECT count(*) FROM meta WHERE key LIKE ?"
        found = db.execute(count, (f"{word} %",)).fetchone()[0]
        return found == ROWS and db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


def _kept(folder) -> list:
    side = ("-wal", "-shm")
    return [one for one in folder.glob("gateway.db.before-*") if not one.name.endswith(side)]


def _restore(copy, env) -> None:
    done = CliRunner().invoke(main, ["restore", str(copy)], env=env)
    assert done.exit_code == 0, done.output


@pytest.fixture
def killed_restore(settings, env, tmp_path):
    """Restore `copy.db` in a process that is killed at a step; returns its exit code."""
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(settings.data_dir), str(tmp_path / "copy.db")],
        env=os.environ | env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:

        def restore(step: int) -> int:
            print(step, file=process.stdin, flush=True)
            while not (line := process.stdout.readline()).lstrip("-").rstrip().isdigit():
                assert line, "the process has ended"
            return int(line)

        yield restore
        process.stdin.close()


@pytest.mark.full
def test_a_restore_that_is_killed_at_any_step_loses_nothing_and_can_be_repeated(
    settings, env, killed_restore, tmp_path
):
    folder, copy = settings.data_dir, tmp_path / "copy.db"
    folder.mkdir(exist_ok=True)
    with contextlib.closing(_fill(copy, "copy", settings.network)):
        pass
    for step in itertools.count(1):
        _like_a_killed_gateways(folder, settings.network)
        with _read(folder):
            ended = killed_restore(step)
            # Inspected elsewhere: opening a database writes to its folder.
            seen = tmp_path / f"seen-{step}"
            shutil.copytree(folder, seen)
            live = seen / "gateway.db"
            olds = [*_kept(seen), *([live] if live.exists() else [])]
            assert any(_holds(one, "old") for one in olds), step
            assert not live.exists() or _holds(live, "old") or _holds(live, "copy"), step
            if ended == 0:
                break
            assert ended == -signal.SIGKILL
            _restore(copy, env)
            assert _holds(folder / "gateway.db", "copy"), step
            assert any(_holds(one, "old") for one in _kept(folder)), step
    assert step > 4


def test_a_copy_that_cannot_be_used_leaves_no_half_of_it_on_the_disk(settings, env, tmp_path):
    settings.data_dir.mkdir(exist_ok=True)
    with contextlib.closing(_fill(tmp_path / "copy.db", "copy", "another network")):
        pass
    done = CliRunner().invoke(main, ["restore", str(tmp_path / "copy.db")], env=env)
    assert (done.exit_code, "another network" in done.output) == (1, True)
    assert list(settings.data_dir.glob("gateway.db.restoring*")) == []


def test_a_start_does_not_undo_the_restore_that_was_done_by_hand(settings, env, tmp_path):
    """GATEWAY_RESTORE is still set when the operator chooses another copy."""
    settings.data_dir.mkdir(exist_ok=True)
    for word in ("first", "second"):
        with contextlib.closing(_fill(tmp_path / word, word, settings.network)):
            pass
    told = settings.changed(restore=str(tmp_path / "first"))
    restore_once(told, now=time.time())
    by_hand = ["restore", str(tmp_path / "second")]
    done = CliRunner().invoke(main, by_hand, env=env | {"GATEWAY_RESTORE": str(tmp_path / "first")})
    assert done.exit_code == 0, done.output
    restore_once(told, now=time.time())
    assert _holds(settings.data_dir / "gateway.db", "second")


async def test_what_was_revoked_since_the_copy_stays_revoked(settings, provider, env, tmp_path):
    async with running(settings, provider) as gateway:
        await log_in(gateway)
        await asyncio.to_thread(
            CliRunner().invoke, main, ["tokens", "new", "books", "--scope", "act"], env=env
        )
        await asyncio.to_thread(CliRunner().invoke, main, ["backup", f"{tmp_path}/copy"], env=env)
    done = await asyncio.to_thread(
        CliRunner().invoke, main, ["restore", f"{tmp_path}/copy"], env=env
    )
    assert done.exit_code == 0, done.output
    assert "tokens" in done.output
    with contextlib.closing(sqlite3.connect(settings.data_dir / "gateway.db")) as db:
        valid = "SELECT count(*), sum(revoked_at IS NULL) FROM operator_tokens"
        assert db.execute(valid).fetchone() == (1, 0)
        still_open = "SELECT count(*), sum(ended_at IS NULL) FROM operator_sessions"
        assert db.execute(still_open).fetchone() == (1, 0)
