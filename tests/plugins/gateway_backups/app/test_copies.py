"""Copies to a bucket or folder during sales, and copies that fail without harm."""

import asyncio
import gzip
import re
import sqlite3
import threading

import attrs
import pytest

from gateway.errors import ActionRefused, BackupFailed
from gateway.store.sqlite import upgrade
from gateway_backups import copying
from gateway_backups import records as rows
from gateway_backups.names import make_name
from gateway_backups.place import place_of
from tests.conftest import Payer, buy, running
from tests.plugins.gateway_backups.app.conftest import (
    backups_of,
    cutting,
    in_bucket,
    leftovers,
    names_in,
)


async def _sell(gateway, payer) -> dict:
    answer = await buy(gateway, payer.header())
    return await gateway.wait((await answer.get_json())["taskId"])


async def test_a_copy_holds_what_was_sold_and_is_written_down(
    copied, provider, payer, clock, tmp_path
):
    async with running(copied.changed(backup_url=""), provider, now=clock) as gateway:
        await _sell(gateway, payer)
        row = await backups_of(gateway, copied, clock).back_up()
        kept = await gateway.services.store.sum(rows.newest, "backup")
    assert names_in(copied) == [row.name]
    assert (kept.name, kept.error, kept.size_bytes) == (row.name, None, row.size_bytes)
    assert kept.details == {"lastPayment": 1}
    data = b"".join(place_of(copied).read(row.name))
    assert len(data) == row.size_bytes
    copy = tmp_path / "copy.db"
    copy.write_bytes(gzip.decompress(data))
    with sqlite3.connect(copy) as db:
        assert db.execute("SELECT count(*) FROM payments").fetchone() == (1,)
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()
    assert leftovers(copied) == []


async def test_a_large_copy_goes_up_in_parts(settings, bucket, provider, clock, tmp_path):
    """Random bytes do not compress, so the upload has several parts."""
    settings = in_bucket(settings, bucket)
    blob = "INSERT INTO meta (key, value) VALUES ('large', hex(randomblob(12000000)))"
    async with running(settings.changed(backup_url=""), provider, now=clock) as gateway:
        await gateway.services.store.write(lambda db: db.execute(blob).fetchall())
        row = await backups_of(gateway, settings, clock).back_up()
        assert row.size_bytes > 10 * 1024 * 1024
        tried = await backups_of(gateway, settings, clock).drill()
    assert tried.details["payments"] == 0


async def test_sales_go_on_while_a_copy_is_made(in_folder, provider, chain, clock, monkeypatch):
    """The copy holds a read transaction, which blocks no write."""
    begun, go_on = threading.Event(), threading.Event()
    write = upgrade.write_copy

    def slowly(db, target):
        db.execute("BEGIN")
        db.execute("SELECT count(*) FROM payments").fetchone()
        begun.set()
        assert go_on.wait(200)
        db.execute("COMMIT")
        write(db, target)

    monkeypatch.setattr(copying.upgrade, "write_copy", slowly)
    payers = [Payer(chain) for _ in range(4)]
    async with running(in_folder.changed(backup_url=""), provider, now=clock) as gateway:
        backups = backups_of(gateway, in_folder, clock)
        copy = asyncio.create_task(backups.back_up())
        await asyncio.to_thread(begun.wait, 200)
        tasks = await asyncio.gather(*(_sell(gateway, payer) for payer in payers))
        assert {task["status"] for task in tasks} == {"completed"}
        with pytest.raises(ActionRefused, match="A backup is already running"):
            await backups.drill()
        with pytest.raises(BackupFailed, match="Another copy or drill runs"):
            await backups_of(gateway, in_folder, clock).back_up()
        go_on.set()
        assert (await copy).error is None


async def _failed(settings, provider, clock) -> str:
    """Try a copy that fails; return the message, which is also in the row."""
    async with running(settings.changed(backup_url=""), provider, now=clock) as gateway:
        backups = backups_of(gateway, settings, clock)
        with pytest.raises(BackupFailed) as caught:
            await backups.back_up()
        row = await gateway.services.store.sum(rows.newest, "backup")
        assert row.error == str(caught.value)
        await gateway.services.store.ping()
    assert leftovers(settings) == []
    return row.error


async def test_a_bucket_that_is_not_there_is_one_sentence(settings, bucket, provider, clock):
    missing = in_bucket(settings, attrs.evolve(bucket, name="nowhere"))
    message = await _failed(missing, provider, clock)
    assert message == "The bucket s3://nowhere/shop/copies cannot take a copy: NoSuchBucket."


async def test_a_bucket_that_refuses_is_one_sentence_without_the_key(
    settings, bucket, provider, clock, httpserver
):
    refusal = "<Error><Code>AccessDenied</Code><Message>very hidden</Message></Error>"
    httpserver.expect_request(re.compile(".*")).respond_with_data(refusal, 403)
    refusing = attrs.evolve(bucket, endpoint=httpserver.url_for("").rstrip("/"))
    message = await _failed(in_bucket(settings, refusing), provider, clock)
    assert message.endswith("cannot take a copy: AccessDenied.")
    assert "hidden" not in message


async def test_a_store_that_does_not_answer_is_one_sentence(settings, dead_bucket, provider, clock):
    message = await _failed(in_bucket(settings, dead_bucket), provider, clock)
    assert message.startswith(
        f"The bucket s3://{dead_bucket.name}/shop/copies cannot take a copy: "
    )


async def test_a_connection_that_is_cut_in_the_middle_leaves_no_copy_and_the_next_one_works(
    settings, bucket, provider, clock
):
    """The second part is never received."""
    async with cutting(bucket.endpoint, after_bytes=6_000_000) as cut:
        broken = in_bucket(settings, attrs.evolve(bucket, endpoint=cut))
        whole = in_bucket(settings, bucket)
        blob = "INSERT INTO meta (key, value) VALUES ('large', hex(randomblob(12000000)))"
        async with running(settings.changed(backup_url=""), provider, now=clock) as gateway:
            await gateway.services.store.write(lambda db: db.execute(blob).fetchall())
            with pytest.raises(BackupFailed, match="cannot take a copy"):
                await backups_of(gateway, broken, clock).back_up()
            assert names_in(whole) == []
            assert leftovers(settings) == []
            made = await backups_of(gateway, whole, clock).back_up()
    assert names_in(whole) == [made.name]


def test_a_check_writes_reads_and_deletes_and_counts_the_copies(copied):
    place = place_of(copied)
    assert place.probe() == []
    place.put(make_name("f" * 16, 0), iter([b"x"]))
    place.put(make_name("f" * 16, 3600), iter([b"x"]))
    assert [copy.at for copy in place.probe()] == [3600, 0]


def test_a_check_of_a_place_that_refuses_is_one_sentence(settings, bucket):
    missing = in_bucket(settings, attrs.evolve(bucket, name="nowhere"))
    with pytest.raises(BackupFailed, match="cannot take a copy: NoSuchBucket"):
        place_of(missing).probe()
