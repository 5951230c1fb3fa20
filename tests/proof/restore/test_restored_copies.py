"""The arguments of `restore` besides a file, its output, and how often GATEWAY_RESTORE restores."""

import asyncio
import contextlib
import gzip
import os
import sqlite3
import time

import attrs
import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.errors import BackupFailed
from gateway.settings import variable
from gateway.store.data_folder import lock_data
from gateway_backups.names import make_name, read_name
from gateway_backups.restoring import restore_once
from gateway_backups.settings import backup_settings_of
from gateway_backups.sqlite import forget_restored_by
from tests.conftest import buy, running
from tests.plugins.gateway_backups.app.conftest import backups_of, bucket, in_bucket, leftovers, s3

__all__ = ["bucket", "s3"]
NAMES = ("base_url", "wallet", "data_dir", "settlement_key")


@pytest.fixture
def in_folder(settings, tmp_path):
    return settings.changed(backup_url=f"file://{tmp_path}/copies")


def run(settings, *words):
    env = {variable(name): str(getattr(settings, name)) for name in NAMES}
    env |= {variable(name): str(value) for name, value in settings.plugin_values.items()}
    env["GATEWAY_RPC_URLS"] = ",".join(settings.rpc_urls)
    return CliRunner().invoke(main, list(words), env=env)


async def _sell(gateway, payer, times=1) -> None:
    for _ in range(times):
        answer = await buy(gateway, payer.header())
        await gateway.wait((await answer.get_json())["taskId"])


async def _copy_then_sell(settings, provider, payer, times=2) -> str:
    """Sell once, copy, sell again; returns the copy's name."""
    quiet = settings.changed(backup_url="")
    async with running(quiet, provider) as gateway:
        await _sell(gateway, payer)
        made = await backups_of(gateway, settings, time.time).back_up()
        await _sell(gateway, payer, times)
    return made.name


def _payments(settings) -> int:
    with contextlib.closing(sqlite3.connect(settings.data_dir / "gateway.db")) as db:
        return db.execute("SELECT count(*) FROM payments").fetchone()[0]


def _replaced(settings) -> list:
    return [
        path
        for path in settings.data_dir.glob("gateway.db.before-restore-*")
        if not path.name.endswith(("-wal", "-shm"))
    ]


# -- names of copies


async def test_the_latest_copy_is_restored_and_says_what_that_forgets(in_folder, provider, payer):
    await _copy_then_sell(in_folder, provider, payer)
    done = await asyncio.to_thread(run, in_folder, "restore", "latest")
    assert done.exit_code == 0, done.output
    assert "The restore forgets 2 payments and " in done.output
    assert _payments(in_folder) == 1
    assert leftovers(in_folder) == []
    with contextlib.closing(sqlite3.connect(in_folder.data_dir / "gateway.db")) as db:
        noted = db.execute("SELECT door, action, subject FROM operator_actions").fetchall()
    assert noted == [("cli", "database.restore", "latest")]


@pytest.mark.parametrize("kind", ["name", "address", "file", "unpacked", "file address"])
async def test_a_copy_is_named_in_many_ways(settings, bucket, provider, payer, tmp_path, kind):
    settings = in_bucket(settings, bucket)
    if "file" in kind or kind == "unpacked":
        settings = settings.changed(backup_url=f"file://{tmp_path}/copies")
    name = await _copy_then_sell(settings, provider, payer)
    named = {
        "name": name,
        "address": f"{backup_settings_of(settings).backup_url}/{name}",
        "file": f"{tmp_path}/copies/{name}",
        "file address": f"file://{tmp_path}/copies/{name}",
        "unpacked": str(tmp_path / "copy.db"),
    }[kind]
    if kind == "unpacked":
        packed = (tmp_path / "copies" / name).read_bytes()
        (tmp_path / "copy.db").write_bytes(gzip.decompress(packed))
    done = await asyncio.to_thread(run, settings, "restore", named)
    assert done.exit_code == 0, done.output
    assert _payments(settings) == 1


async def test_a_lost_volume_comes_back_from_the_bucket(settings, bucket, provider, payer):
    settings = in_bucket(settings, bucket)
    await _copy_then_sell(settings, provider, payer)
    lost = attrs.evolve(settings, data_dir=settings.data_dir.with_name("new-volume"))
    done = await asyncio.to_thread(run, lost, "restore", "latest")
    assert done.exit_code == 0, done.output
    assert _payments(lost) == 1
    async with running(lost.changed(backup_url=""), provider) as gateway:
        await gateway.services.store.ping()


async def test_latest_refuses_where_copies_of_several_gateways_lie(
    in_folder, provider, payer, tmp_path
):
    """The newest may be of the empty gateway that was started with a new volume."""
    name = await _copy_then_sell(in_folder, provider, payer)
    other = make_name("f" * 16, time.time() + 60)
    (tmp_path / "copies" / other).write_bytes(b"x")
    done = await asyncio.to_thread(run, in_folder, "restore", "latest")
    assert done.exit_code == 1
    assert "several gateways" in done.output
    assert (name in done.output, other in done.output) == (True, True)
    assert _payments(in_folder) == 3


async def test_a_copy_of_before_an_upgrade_says_how_many_sales_it_forgets(
    in_folder, provider, payer
):
    kept = in_folder.data_dir / "gateway.db.before-6"
    quiet = in_folder.changed(backup_url="")
    async with running(quiet, provider) as gateway:
        await _sell(gateway, payer)
        await asyncio.to_thread(run, in_folder, "backup", str(kept))
        await _sell(gateway, payer, 3)
    done = await asyncio.to_thread(run, in_folder, "restore", str(kept))
    assert "The restore forgets 3 payments and " in done.output
    assert kept.exists()


async def test_copies_in_a_folder_are_private_whatever_the_umask_is(in_folder, provider, tmp_path):
    (tmp_path / "copies").mkdir(0o755)
    async with running(in_folder.changed(backup_url=""), provider):
        umask = os.umask(0)
        try:
            made = await asyncio.to_thread(run, in_folder, "backup")
        finally:
            os.umask(umask)
    assert made.exit_code == 0, made.output
    (copy,) = (tmp_path / "copies").iterdir()
    assert copy.stat().st_mode & 0o077 == 0


# -- an unusable copy changes nothing


@pytest.mark.parametrize("damage", ["cut", "gone", "none"])
async def test_a_copy_that_cannot_be_had_changes_nothing(
    in_folder, provider, payer, tmp_path, damage
):
    name = await _copy_then_sell(in_folder, provider, payer)
    copy = tmp_path / "copies" / name
    if damage == "cut":
        copy.write_bytes(copy.read_bytes()[:5000])
    elif damage == "gone":
        copy.unlink()
    named = "latest" if damage != "none" else make_name("f" * 16, 0)
    done = await asyncio.to_thread(run, in_folder, "restore", named)
    assert (done.exit_code, "Traceback" in done.output) == (1, False)
    assert done.output.startswith("gateway: ")
    assert _payments(in_folder) == 3
    assert (_replaced(in_folder), leftovers(in_folder)) == ([], [])


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("s3://bucket", "names no copy"),
        ("s3://", "names no copy"),
        ("s3://bucket/name.db.gz", "needs its key"),
        ("/", "not a readable database"),
        ("nowhere.db", "There is no file nowhere.db"),
        ("file:///nowhere.db", "There is no file /nowhere.db"),
    ],
)
def test_words_that_name_no_copy_get_one_sentence(settings, named, message):
    done = run(settings, "restore", named)
    assert (done.exit_code, message in done.output) == (1, True), done.output
    assert not (settings.data_dir / "gateway.db").exists()


def test_a_running_gateway_is_found_before_anything_is_fetched(in_folder):
    lock = lock_data(in_folder)
    done = run(in_folder, "restore", "latest")
    lock.close()
    assert (done.exit_code, "Another gateway uses" in done.output) == (1, True)


async def test_a_database_that_is_damaged_is_replaced_all_the_same(in_folder, provider, payer):
    await _copy_then_sell(in_folder, provider, payer)
    database = in_folder.data_dir / "gateway.db"
    for path in in_folder.data_dir.glob("gateway.db-*"):
        path.unlink()
    database.write_bytes(b"\xa5" * database.stat().st_size)
    done = await asyncio.to_thread(run, in_folder, "restore", "latest")
    assert done.exit_code == 0, done.output
    assert "The restore forgets an unknown number of payments." in done.output
    assert _payments(in_folder) == 1


# -- GATEWAY_RESTORE


async def test_a_start_restores_once_for_the_same_words(in_folder, provider, payer):
    name = await _copy_then_sell(in_folder, provider, payer)
    asked = in_folder.changed(restore=name)

    def start(later_s: float = 0) -> int:
        restore_once(asked, now=time.time() + later_s)
        return _payments(asked)

    assert start() == 1
    quiet = asked.changed(backup_url="")
    async with running(quiet, provider) as gateway:
        await _sell(gateway, payer)
    # Its copies remember it too: a new volume after another loss is restored nevertheless.
    assert start() == 2
    assert len(_replaced(asked)) == 1
    forget_restored_by(asked)
    assert start(later_s=60) == 1
    assert len(_replaced(asked)) == 2


async def test_a_copy_that_is_missing_stops_the_start_and_changes_nothing(
    in_folder, provider, payer
):
    await _copy_then_sell(in_folder, provider, payer)
    asked = in_folder.changed(restore=make_name("f" * 16, 0))
    with pytest.raises(BackupFailed, match="cannot find the copy"):
        restore_once(asked, now=time.time())
    assert _payments(asked) == 3


async def test_the_copies_of_a_restored_database_do_not_keep_a_new_volume_from_its_restore(
    in_folder, provider, payer
):
    await _copy_then_sell(in_folder, provider, payer)
    asked = in_folder.changed(restore="latest")
    restore_once(asked, now=time.time())
    quiet = asked.changed(backup_url="")
    async with running(quiet, provider) as gateway:
        await _sell(gateway, payer, 3)
        later = await backups_of(gateway, asked, lambda: time.time() + 60).back_up()
    lost = attrs.evolve(asked, data_dir=asked.data_dir.with_name("new-volume"))
    restore_once(lost, now=time.time() + 120)
    assert read_name(later.name) is not None
    assert _payments(lost) == 4
