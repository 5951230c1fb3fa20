"""The database gives the disk back what held requests took, while it runs."""

import contextlib
import os
import sqlite3
import subprocess
from pathlib import Path

import attrs
import pytest

from gateway.domain import Attachment, GenerationRequest
from gateway.store import SqliteStore
from gateway.testing.store.facts import NOW, authorization, key_of, new_task
from gateway.web.services import Timing
from tests.conftest import Payer, buy, running

MEGABYTE = 10**6
FILE = GenerationRequest(attachment=Attachment(name="a.txt", data=b"a" * 2 * MEGABYTE))
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small volume needs root")


@pytest.fixture
def volume(tmp_path) -> Path:
    """A volume of 40 MB of its own."""
    folder = tmp_path / "volume"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(folder)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("this machine mounts no tmpfs")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


async def hold(store, nonce: int) -> int:
    """Hold a file of two megabytes for a payment; returns the payment."""
    signed = authorization(nonce)
    task = await store.reserve(new_task(request=FILE), signed, key_of(signed), 0)
    return task.payment.id


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("gateway.db*"))


@needs_root
async def test_a_volume_that_held_requests_filled_sells_again_without_a_restart(
    settings, provider, chain, clock, volume
):
    small = attrs.evolve(settings, data_dir=volume, min_free_disk_mb=30)
    timing = Timing(give_back_space_s=0.05)
    async with running(small, provider, now=clock, timing=timing) as gateway:
        gateway.chain = chain
        await gateway.services.payments.cutoff_block()
        store = gateway.services.store
        held = [await hold(store, nonce) for nonce in range(8)]
        header = Payer(chain).header()
        refusal = await buy(gateway, header)
        assert refusal.status_code == 500
        assert "disk is nearly full" in (await refusal.get_json())["error"]
        for payment_id in held:
            await store.release(payment_id, now=NOW)
        await store.give_back_space()
        answer = await buy(gateway, header)
        assert answer.status_code == 200, await answer.get_json()


async def test_deleted_requests_leave_neither_file_nor_log_large(tmp_path):
    async with SqliteStore(tmp_path / "gateway.db") as store:
        empty = size_of(tmp_path)
        held = [await hold(store, nonce) for nonce in range(20)]
        assert size_of(tmp_path) > 40 * MEGABYTE
        for payment_id in held:
            await store.release(payment_id, now=NOW)
        await store.give_back_space()
        assert size_of(tmp_path) < empty + 6 * MEGABYTE


async def test_a_database_of_an_older_release_can_shrink_too(tmp_path):
    path = tmp_path / "gateway.db"
    with contextlib.closing(sqlite3.connect(path)) as old:
        old.execute("PRAGMA auto_vacuum = NONE")
        old.execute("PRAGMA journal_mode = WAL")
        old.execute("CREATE TABLE before (x)")
        old.execute("DROP TABLE before")
        old.commit()
    async with SqliteStore(path) as store:
        payment_id = await hold(store, 1)
        await store.release(payment_id, now=NOW)
        await store.give_back_space()
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA auto_vacuum").fetchone()[0] == 2
