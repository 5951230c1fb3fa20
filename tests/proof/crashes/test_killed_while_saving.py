"""A process killed at every step of saving: nothing half is shown, nothing is left for good."""

import subprocess
import sys
import time

import pytest

from gateway import Output, Result
from gateway.outputs import retention
from gateway.store import SqliteStore
from gateway.testing.store.facts import NOW, leased
from tests.unit.outputs.conftest import LEASE, listed

_WHOLE = b"whole" * 20_000
_RESULT = Result(outputs=(Output(data=_WHOLE, media_type="image/png"),), text="whole")
_LATER = time.time() + 365 * 86_400
_CHILD = """
import asyncio, builtins, os, pathlib, signal, sys
from gateway import Output, Result
from gateway.outputs import DiskOutputs

folder, lease, last = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
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
asyncio.run(DiskOutputs(folder, "secret").save(lease, result))
print("saved")
"""
_STEPS = 9  # the parent folder synced; two files: open, sync, rename; their folders synced


def killed_at(step: int, folder) -> bool:
    """Save in a process that is killed at a step; whether it was."""
    asked = [sys.executable, "-c", _CHILD, str(folder), LEASE, str(step)]
    child = subprocess.run(asked, capture_output=True, check=False, timeout=60)
    assert child.returncode in (0, -9), child.stderr
    return child.returncode == -9


@pytest.mark.parametrize("step", range(1, _STEPS + 2))
async def test_killed_at_any_step_it_leaves_whole_files_that_are_swept(
    step, local, folder, tmp_path
):
    assert killed_at(step, folder) == (step <= _STEPS)
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
