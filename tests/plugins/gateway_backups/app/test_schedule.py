"""Copies and drills run when due, are thinned out, and are retried after a failure."""

import asyncio

import pytest

from gateway_backups import copying
from gateway_backups import records as rows
from gateway_backups.names import make_name, read_name
from gateway_backups.place import place_of
from gateway_backups.schedule import Backups, BackupTiming
from tests.conftest import running
from tests.operator_history import Sale, add_sale
from tests.patience import PATIENCE_S
from tests.plugins.gateway_backups.app.conftest import names_in

HOUR = 3600


@pytest.fixture
async def gateway(in_folder, provider, clock):
    async with running(in_folder.changed(backup_url=""), provider, now=clock) as started:
        yield started


async def _until(condition) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await condition():  # noqa: ASYNC110 - the gateway's own work is waited for
            await asyncio.sleep(0.02)


async def _rows(gateway, kind) -> list:
    return await gateway.services.store.sum(rows.records, 1000, kind)


async def test_a_gateway_that_starts_makes_a_copy_and_tries_it(in_folder, provider, clock):
    async with running(in_folder, provider, now=clock) as gateway:
        await _until(lambda: _has(gateway, "drill", 1))
        (backup,), (drill,) = await _rows(gateway, "backup"), await _rows(gateway, "drill")
        assert (backup.error, drill.error, drill.name) == (None, None, backup.name)
    # A restart repeats nothing.
    async with running(in_folder, provider, now=clock) as gateway:
        await gateway.services.lifecycle.warmed.wait()
        assert gateway.services.find(Backups).running is None
        await asyncio.sleep(0.5)
        assert len(await _rows(gateway, "backup")) == 1


async def _has(gateway, kind, many) -> bool:
    return len(await _rows(gateway, kind)) >= many


async def _repeat(gateway, settings, clock) -> asyncio.Task:
    backups = Backups(
        settings=settings,
        store=gateway.services.store,
        now=clock,
        timing=BackupTiming(poll_s=0.02),
    )
    return asyncio.create_task(backups.repeat_forever())


async def test_an_hour_later_the_next_copy_is_made_and_a_week_later_the_next_drill(
    gateway, in_folder, clock
):
    task = await _repeat(gateway, in_folder, clock)
    await _until(lambda: _has(gateway, "drill", 1))
    clock.offset_s += HOUR + 1
    await _until(lambda: _has(gateway, "backup", 2))
    assert len(await _rows(gateway, "drill")) == 1
    clock.offset_s += 7 * 24 * HOUR
    await _until(lambda: _has(gateway, "drill", 2))
    task.cancel()


async def test_an_early_copy_that_is_wanted_during_a_check_is_made(
    gateway, in_folder, clock, monkeypatch
):
    """The check of the drill follows that of the copy."""
    await gateway.services.store.write(add_sale, Sale(at=clock()))
    backups = Backups(settings=in_folder, store=gateway.services.store, now=clock)
    pending = []

    async def want_one(_, kind):
        if kind == "drill" and not pending:
            pending.extend(await backups.find_pending())
        return False

    monkeypatch.setattr(Backups, "_is_due", want_one)
    task = asyncio.create_task(backups.repeat_forever())
    await _until(lambda: _has(gateway, "backup", 1))
    task.cancel()
    assert pending == ["backup"]


async def test_after_a_failure_the_next_time_works(gateway, in_folder, clock, tmp_path):
    """A file is in the folder's place."""
    (tmp_path / "copies").write_text("a file")
    task = await _repeat(gateway, in_folder, clock)
    await _until(lambda: _has(gateway, "backup", 1))
    (failed,) = await _rows(gateway, "backup")
    assert "cannot take a copy" in failed.error
    assert await _rows(gateway, "drill") == []
    (tmp_path / "copies").unlink()
    clock.offset_s += HOUR + 1
    await _until(lambda: _has(gateway, "drill", 1))
    task.cancel()
    assert (await _rows(gateway, "backup"))[0].error is None


async def test_old_copies_of_this_gateway_are_deleted_and_nothing_else(
    gateway, in_folder, clock, tmp_path
):
    folder = tmp_path / "copies"
    folder.mkdir()
    ours = copying.read_origin(in_folder)
    old = [make_name(ours, clock() - hours * HOUR) for hours in range(24, 24 * 90)]
    foreign = [
        make_name("f" * 16, clock() - 1000 * 24 * HOUR),
        "notes.txt",
        f"{old[-1]}.mine",
        "gateway.db",
    ]
    for name in [*old, *foreign]:
        (folder / name).write_bytes(b"x")
    task = await _repeat(gateway, in_folder, clock)
    await _until(lambda: _has(gateway, "drill", 1))
    task.cancel()
    left = {path.name for path in folder.iterdir()}
    assert set(foreign) <= left
    kept = [name for name in left - set(foreign) if read_name(name)]
    assert 24 + 7 <= len(kept) <= 24 + 7 + 5


async def test_the_copy_from_before_a_migration_goes_up_once(gateway, in_folder, clock):
    kept = in_folder.data_dir / "gateway.db.before-6"
    kept.write_bytes((in_folder.data_dir / "gateway.db").read_bytes())
    for name in ("gateway.db.before-restore-20260101-000000", "gateway.db.before-7.part"):
        (in_folder.data_dir / name).write_bytes(b"x")
    backups = Backups(settings=in_folder, store=gateway.services.store, now=clock)
    await backups.back_up()
    clock.offset_s += HOUR
    await backups.back_up()
    before = [copy.before for copy in place_of(in_folder).copies() if copy.before is not None]
    assert before == [6]
    # If both scheduled copies are of one hour, only the newer is kept.
    assert len(names_in(in_folder)) in (2, 3)


async def test_the_copy_from_before_a_migration_goes_up_at_the_start_though_no_other_is_due(
    gateway, in_folder, clock
):
    backups = Backups(settings=in_folder, store=gateway.services.store, now=clock)
    await backups.back_up()
    kept = in_folder.data_dir / "gateway.db.before-6"
    kept.write_bytes((in_folder.data_dir / "gateway.db").read_bytes())
    task = await _repeat(gateway, in_folder, clock)

    async def is_there() -> bool:
        return 6 in [copy.before for copy in await backups.copies()]

    await _until(is_there)
    task.cancel()
    assert len(await _rows(gateway, "backup")) == 1
