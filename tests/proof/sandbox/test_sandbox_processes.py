"""The warmed process: how it dies, and what remains when others do."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.sandbox import Sandbox, SandboxEnded, SandboxLimits, SandboxLost
from gateway.sandbox.child.fork_server import ForkServer
from gateway.sandbox.memory_budget import MemoryBudget
from tests.proof.sandbox.processes import (
    children_of,
    eventually,
    is_alive,
    of_process,
    only_root_looks_inside,
    open_files_of,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture
def echo():
    box = Sandbox(function="sandbox_functions:echo")
    yield box
    box.close()


@pytest.fixture
def sleeper():
    box = Sandbox(function="sandbox_functions:sleep", limits=SandboxLimits(wall_s=300))
    yield box
    box.close()


def fork_server_pid(box):
    return box._running.process.pid


async def start_sleeping(box):
    """Return the waiting task, and the sleeping child."""
    task = asyncio.create_task(box.call())
    await box.start()
    [child] = await eventually(lambda: children_of(fork_server_pid(box)))
    return task, child


@only_root_looks_inside
async def test_the_process_has_none_of_the_gateways_secrets(echo, monkeypatch):
    monkeypatch.setenv("GATEWAY_SETTLEMENT_KEY", "0xsecret")
    await echo.call(b"")
    assert "GATEWAY" not in of_process(fork_server_pid(echo), "environ")
    assert "0xsecret" not in of_process(fork_server_pid(echo), "cmdline")


async def test_a_child_is_the_first_to_go_where_memory_is_short(sleeper):
    task, child = await start_sleeping(sleeper)
    await eventually(lambda: of_process(child, "oom_score_adj").strip() == "1000")
    task.cancel()


async def test_who_waits_no_longer_leaves_no_child_behind(sleeper):
    task, child = await start_sleeping(sleeper)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    await eventually(lambda: not is_alive(child))
    assert is_alive(fork_server_pid(sleeper))


async def test_cancelling_in_the_midst_of_megabytes_leaves_no_child_behind(echo):
    await echo.call(b"")
    for pause in range(8):
        task = asyncio.create_task(echo.call(bytes(50_000_000)))
        await asyncio.sleep(pause / 200)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await eventually(lambda: not children_of(fork_server_pid(echo)))
    assert await echo.call(b"still here") == b"still here"


async def test_a_child_killed_from_outside_is_worth_another_try(sleeper):
    task, child = await start_sleeping(sleeper)
    os.kill(child, signal.SIGKILL)
    with pytest.raises(SandboxLost, match="killed from outside"):
        await task


async def test_a_process_that_left_is_started_again(echo):
    await echo.call(b"")
    first = fork_server_pid(echo)
    os.kill(first, signal.SIGKILL)
    assert await echo.call(b"again") == b"again"
    assert fork_server_pid(echo) != first


async def test_a_call_whose_process_is_killed_is_made_by_the_next(sleeper):
    task, child = await start_sleeping(sleeper)
    first = fork_server_pid(sleeper)
    os.kill(first, signal.SIGKILL)
    await eventually(lambda: not is_alive(child))
    await eventually(lambda: sleeper._running is not None and fork_server_pid(sleeper) != first)
    await eventually(lambda: children_of(fork_server_pid(sleeper)))
    task.cancel()


async def test_a_process_that_answers_nothing_is_ended(sleeper):
    sleeper._start_s = -299.5
    first = asyncio.create_task(sleeper.call())
    with pytest.raises(SandboxLost, match="does not answer"):
        await first
    assert sleeper._running.is_alive is False


@pytest.mark.parametrize("python", ["/bin/false", "/nowhere/python"])
async def test_a_process_that_cannot_start_is_worth_another_try(echo, monkeypatch, python):
    monkeypatch.setattr(sys, "executable", python)
    with pytest.raises(SandboxLost, match="could not be started"):
        await echo.call(b"")


@pytest.mark.parametrize("function", ["sandbox_functions:nothing", "no_such_module:echo"])
async def test_a_function_that_does_not_exist_is_said_to_the_programmer(function, capfd):
    box = Sandbox(function=function)
    with pytest.raises(SandboxLost, match="could not be started"):
        await box.call()
    assert "Error: " in capfd.readouterr().err


@only_root_looks_inside
async def test_many_calls_at_once_are_all_answered(echo):
    answers = await asyncio.gather(*(echo.call(str(at).encode()) for at in range(100)))
    assert [int(answer) for answer in answers] == list(range(100))
    await eventually(lambda: not children_of(fork_server_pid(echo)))
    assert open_files_of(fork_server_pid(echo)) < 12  # and nothing stays open


async def test_closing_ends_everything_and_the_next_call_begins_anew(sleeper):
    task, child = await start_sleeping(sleeper)
    fork_server = fork_server_pid(sleeper)
    task.cancel()
    sleeper.close()
    sleeper.close()
    await eventually(lambda: not is_alive(child) and not is_alive(fork_server))
    await sleeper.start()
    assert is_alive(fork_server_pid(sleeper))


def test_an_idle_process_leaves():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        limits = SandboxLimits(idle_s=300)
        fork_server = ForkServer(
            control=theirs, gateway_pid=os.getppid(), serve=print, limits=limits
        )
        assert fork_server._is_wanted()
        fork_server._last_busy -= 301
        assert not fork_server._is_wanted()


async def test_an_idle_process_gives_its_memory_back():
    box = Sandbox(function="sandbox_functions:echo", limits=SandboxLimits(idle_s=0.1))
    await box.call(b"")
    await eventually(lambda: not box._running.is_alive)
    assert await box.call(b"back") == b"back"
    box.close()


async def test_an_idle_process_leaves_sooner_on_a_small_machine():
    # A machine of 512 MB has 256 MB for sandboxes, one of 1 GB 724 MB.
    boxes = [
        Sandbox(
            function="sandbox_functions:echo",
            limits=SandboxLimits(idle_s=300),
            budget=MemoryBudget(total_bytes=total_mb * 10**6, short_idle_s=0.1),
        )
        for total_mb in (256, 724)
    ]
    for box in boxes:
        await box.call(b"")
    small, large = boxes
    await eventually(lambda: not small.is_running)
    assert large.is_running
    assert await small.call(b"back") == b"back"
    for box in boxes:
        box.close()


async def test_being_late_is_told_although_the_child_was_killed(sleeper):
    box = Sandbox(function="sandbox_functions:sleep", limits=SandboxLimits(wall_s=0.1))
    with pytest.raises(SandboxEnded) as ended:
        await box.call()
    assert ended.value.end == "out of time"
    box.close()


SERVER = """
import asyncio, sys
sys.path[:0] = sys.argv[1:]
from gateway.sandbox import Sandbox

async def main():
    box = Sandbox(function="sandbox_functions:sleep", warm=WARM)
    await box.start()
    print(box._running.process.pid, flush=True)
    await box.call()

asyncio.run(main())
"""


async def started_server(*, warm=()):
    """Return a process that waits for its own sandbox, and the warmed process's id."""
    tests = Path(__file__).parent
    paths = [str(path) for path in (tests, tests.parents[2])]
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVER.replace("WARM", repr(warm)), *paths, stdout=subprocess.PIPE
    )
    return server, int(await server.stdout.readline())


async def test_a_warmed_process_that_still_loads_does_not_outlive_a_killed_gateway():
    server, fork_server = await started_server(warm=("sandbox_functions:sleep",))
    server.kill()
    await server.wait()
    await eventually(lambda: not is_alive(fork_server))


async def test_no_process_outlives_a_killed_gateway():
    server, fork_server = await started_server()
    [child] = await eventually(lambda: children_of(fork_server))
    server.kill()
    await server.wait()
    await eventually(lambda: not is_alive(fork_server) and not is_alive(child))
