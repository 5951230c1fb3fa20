"""A process killed at every step of saving: nothing partial is visible or stays."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gateway import Output, Result
from gateway.outputs import retention
from gateway.store import SqliteStore
from gateway_testing.facts import NOW, leased
from tests.unit.outputs.conftest import LEASE, listed

_WHOLE = b"whole" * 20_000
_RESULT = Result(outputs=(Output(data=_WHOLE, media_type="image/png"),), text="whole")
_LATER = time.time() + 365 * 86_400
_CHILD = """
import asyncio, builtins, os, pathlib, signal, sys
from gateway import Output, Result
from gateway.outputs import DiskOutputs

folders, lease = pathlib.Path(sys.argv[1]), sys.argv[2]
steps = 0

def dying(step):
    def counted(*args, **named):
        global steps
        steps += 1
        if steps == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return step(*args, **named)
    return counted

os.fsync = dying(os.fsync)
pathlib.Path.replace = dying(pathlib.Path.replace)
builtins.open = dying(builtins.open)
result = Result(outputs=(Output(data=b"whole" * 20_000, media_type="image/png"),), text="whole")
for last in map(int, sys.argv[3:]):
    if os.fork() == 0:
        asyncio.run(DiskOutputs(folders / str(last), "secret").save(lease, result))
        os._exit(0)
    print(last, os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""
_STEPS = 9  # the parent folder synced; two files: open, sync, rename; their folders synced


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> tuple[Path, dict[int, int]]:
    """Save in processes, each killed at another step; their folders and exit codes, by step."""
    folders = tmp_path_factory.mktemp("saved")
    asked = [sys.executable, "-c", _CHILD, str(folders), LEASE, *map(str, range(1, _STEPS + 2))]
    child = subprocess.run(asked, capture_output=True, check=True, text=True)
    rows = (line.split() for line in child.stdout.splitlines())
    return folders, {int(step): int(code) for step, code in rows}


@pytest.mark.parametrize("step", range(1, _STEPS + 2))
async def test_killed_at_any_step_it_leaves_whole_files_that_are_swept(
    step, killed, local, folder, tmp_path
):
    folders, codes = killed
    assert codes[step] == (-signal.SIGKILL if step <= _STEPS else 0)
    shutil.copytree(folders / str(step), folder, dirs_exist_ok=True)
    for path in folder.rglob("*.*"):
        if path.suffix != ".partial":
            assert path.read_bytes() in (_WHOLE, b"whole")
    async with SqliteStore(tmp_path / "gateway.db") as store:
        lease = await leased(store, 1)  # the next lane
        stored = await local.save(f"{lease.task_id}-{lease.token[:16].lower()}", _RESULT)
        await store.queue.complete(lease, stored, expires_at=_LATER, now=NOW)
        await retention.tidy(store, local, _LATER)
    assert await listed(local, _LATER) == sorted(output.key for output in stored.outputs)
    assert len(list(folder.iterdir())) == 1
