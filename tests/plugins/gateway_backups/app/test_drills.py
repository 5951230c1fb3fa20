"""The drill reports what a restore of the newest copy would lose, and finds bad copies."""

import asyncio
import gzip
import sqlite3

import attrs
import pytest

from gateway.errors import ActionRefused, BackupFailed
from gateway_backups import copying
from gateway_backups import records as rows
from gateway_backups.names import make_name
from gateway_backups.place import place_of
from gateway_operator.audit_log import Actor, AlreadyDone
from gateway_operator.desk import backups as service
from gateway_operator.sql.records import OperatorRecords
from gateway_operator.state import Operator
from tests.conftest import buy, running
from tests.plugins.gateway_backups.app.conftest import backups_of, leftovers

AT = 1_800_000_000.0
PAGE = Actor(door="page", name="1234", request="1234:a")


@pytest.fixture
async def gateway(in_folder, provider, clock):
    async with running(in_folder.changed(backup_url=""), provider, now=clock) as started:
        yield started


async def _sell(gateway, payer, times: int) -> None:
    for _ in range(times):
        answer = await buy(gateway, payer.header())
        await gateway.wait((await answer.get_json())["taskId"])


async def test_a_drill_says_what_a_restore_now_would_forget(copied, provider, payer, clock):
    async with running(copied.changed(backup_url=""), provider, now=clock) as gateway:
        await _sell(gateway, payer, 1)
        made = await backups_of(gateway, copied, lambda: AT).back_up()
        await _sell(gateway, payer, 3)
        row = await backups_of(gateway, copied, lambda: AT + 41).drill()
        status = await gateway.services.store.sum(rows.newest, "drill")
    assert (row.kind, row.name, row.error) == ("drill", made.name, None)
    assert row.details == {"payments": 3, "units": 60_000, "seconds": 41.0}
    assert status == row
    assert leftovers(copied) == []


async def test_the_page_knows_it_without_asking_the_bucket(gateway, in_folder, payer, clock):
    desk = gateway.services.find(Operator).desk
    nothing = await service.status(desk)
    assert (nothing.last, nothing.drill, nothing.forgotten, nothing.age_s) == (None,) * 4
    made = await backups_of(gateway, in_folder, lambda: AT).back_up()
    await _sell(gateway, payer, 2)
    known = await service.status(attrs.evolve(desk, now=lambda: AT + 90))
    assert (known.last, known.failed, known.age_s) == (made, None, 90.0)
    assert str(known.forgotten) == "2 payments and 90 s"


async def test_an_operator_makes_copies_and_drills_once_for_each_request(gateway, in_folder, clock):
    desk, backups = gateway.services.find(Operator).desk, backups_of(gateway, in_folder, clock)
    made = await service.run_now(desk, backups, PAGE, "backup")
    with pytest.raises(AlreadyDone):
        await service.run_now(desk, backups, PAGE, "backup")
    assert [copy.name for copy in await service.copies(backups)] == [made.name]
    await service.begin(desk, backups, attrs.evolve(PAGE, request="1234:b"), "drill")
    with pytest.raises(ActionRefused, match="A drill is already running"):
        await service.begin(desk, backups, attrs.evolve(PAGE, request="1234:c"), "drill")
    await backups._task
    assert (await service.status(desk)).good_drill is not None
    actions = await desk.records.actions(None, 9)
    assert [action.action for action in actions] == ["drill.now", "backup.now"]


async def test_of_two_requests_at_once_one_is_refused_and_not_recorded(gateway, in_folder, clock):
    desk, backups = gateway.services.find(Operator).desk, backups_of(gateway, in_folder, clock)
    both = await asyncio.gather(
        *(
            service.begin(desk, backups, attrs.evolve(PAGE, request=f"1234:{number}"), "backup")
            for number in range(2)
        ),
        return_exceptions=True,
    )
    assert [type(result) for result in both] == [type(None), ActionRefused]
    await backups._task
    assert [action.action for action in await desk.records.actions(None, 9)] == ["backup.now"]
    # A request that was already carried out leaves the next run free.
    with pytest.raises(AlreadyDone):
        await service.begin(desk, backups, attrs.evolve(PAGE, request="1234:0"), "backup")
    assert backups.running is None


async def test_without_a_place_an_operator_reads_how_to_name_one(gateway):
    with pytest.raises(ActionRefused, match="GATEWAY_BACKUP_URL is not set"):
        await service.run_now(gateway.services.find(Operator).desk, None, PAGE, "backup")
    assert await OperatorRecords(gateway.services.store).actions(None, 9) == []


# -- unusable copies


def _cut_off(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _flip(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]


def _damage_pages(data: bytes) -> bytes:
    whole = bytearray(gzip.decompress(data))
    whole[8192:40_960] = b"\xa5" * 32_768
    return gzip.compress(bytes(whole))


def _of_another_network(data: bytes) -> bytes:
    with sqlite3.connect(":memory:", isolation_level=None) as db:
        # A connection in memory cannot read a database in WAL mode.
        whole = bytearray(gzip.decompress(data))
        whole[18:20] = b"\x01\x01"
        db.deserialize(bytes(whole))
        db.execute("UPDATE meta SET value = 'base-sepolia' WHERE key = 'network'")
        changed = db.serialize()
    db.close()
    return gzip.compress(changed)


def _of_another_program(data: bytes) -> bytes:
    return gzip.compress(b"")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_cut_off, "is cut off"),
        (_flip, "is damaged"),
        (_damage_pages, "cannot be restored"),
        (_of_another_network, "is of network base-sepolia"),
        (_of_another_program, "not a gateway's database"),
        (lambda data: b"", "is cut off"),
    ],
)
async def test_a_copy_that_cannot_be_restored_is_found(
    gateway, in_folder, clock, tmp_path, spoil, message
):
    backups = backups_of(gateway, in_folder, clock)
    made = await backups.back_up()
    copy = tmp_path / "copies" / made.name
    copy.write_bytes(spoil(copy.read_bytes()))
    with pytest.raises(BackupFailed, match=message):
        await backups.drill()
    row = await gateway.services.store.sum(rows.newest, "drill")
    assert (row.name, message in row.error) == (made.name, True)
    assert leftovers(in_folder) == []


async def test_without_a_copy_a_drill_says_so(gateway, in_folder, clock):
    with pytest.raises(BackupFailed, match="has no copy of this gateway yet"):
        await backups_of(gateway, in_folder, clock).drill()


async def test_a_copy_that_unpacks_to_more_than_the_disk_holds_is_given_up(
    gateway, in_folder, clock, tmp_path, monkeypatch
):
    """200 MB of zeros are 200 KB in gzip."""
    backups = backups_of(gateway, in_folder, clock)
    made = await backups.back_up()
    bomb = gzip.compress(bytes(200_000_000))
    (tmp_path / "copies" / made.name).write_bytes(bomb)
    free, sizes = copying.shutil.disk_usage, [0]

    def nearly_full(folder):
        written = sum(path.stat().st_size for path in folder.glob("gateway.db.copying-*"))
        sizes.append(written)
        return free(folder)._replace(free=10_000_000 + 100_000_000 - written)

    monkeypatch.setattr(copying.shutil, "disk_usage", nearly_full)
    tight = attrs.evolve(in_folder, min_free_disk_mb=10)
    with pytest.raises(BackupFailed, match="does not fit"):
        await backups_of(gateway, tight, clock).drill()
    assert max(sizes) < 102_000_000
    assert leftovers(in_folder) == []


async def test_a_disk_without_room_refuses_a_copy_before_it_begins(
    gateway, in_folder, clock, monkeypatch
):
    tight = attrs.evolve(in_folder, min_free_disk_mb=10**9)
    with pytest.raises(BackupFailed, match="MB are free in"):
        await backups_of(gateway, tight, clock).back_up()
    assert place_of(in_folder).copies() == []


async def test_a_disk_that_fills_meanwhile_is_one_sentence_and_leaves_nothing(
    gateway, in_folder, clock, monkeypatch
):
    def fill(db, target):
        target.write_bytes(b"half")
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as full:
        full.setattr(copying.upgrade, "write_copy", fill)
        with pytest.raises(BackupFailed, match="database or disk is full"):
            await backups_of(gateway, in_folder, clock).back_up()
        assert leftovers(in_folder) == []
    assert (await backups_of(gateway, in_folder, clock).back_up()).error is None


async def test_what_a_killed_copy_left_is_removed_by_the_next(gateway, in_folder, clock):
    (in_folder.data_dir / "gateway.db.copying-live").write_bytes(b"half")
    await backups_of(gateway, in_folder, clock).back_up()
    assert leftovers(in_folder) == []


async def test_the_newest_copy_of_this_gateway_is_tried_and_no_others(
    gateway, in_folder, clock, tmp_path
):
    backups = backups_of(gateway, in_folder, clock)
    made = await backups.back_up()
    (tmp_path / "copies" / make_name("f" * 16, clock() + 60)).write_bytes(b"of another")
    assert (await backups.drill()).name == made.name
