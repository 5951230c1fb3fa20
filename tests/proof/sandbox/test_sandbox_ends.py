"""How a child ends: by its input, or by a shortage of this machine."""

import asyncio
import contextlib
import os
import resource
import signal
import socket
import sys

import pytest
import sandbox_functions

from gateway.sandbox import Sandbox, SandboxEnded, SandboxLimits, SandboxLost
from gateway.sandbox.child import work
from gateway.sandbox.child.fork_server import ForkServer
from tests.proof.sandbox.processes import children_of, eventually, is_alive, of_process

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
NAME = sandbox_functions.__name__
# Signals that end a process, except the gateway's own two.
ENDING = sorted(
    set(signal.valid_signals())
    - {signal.SIGKILL, signal.SIGXCPU, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN}
    - {signal.SIGTTOU, signal.SIGCONT, signal.SIGCHLD, signal.SIGURG, signal.SIGWINCH}
)


@pytest.fixture
def sandbox():
    with contextlib.ExitStack() as opened:

        def make(name, *, warm=(), **limits):
            function = f"{NAME}:{name}"
            box = Sandbox(function=function, warm=warm, limits=SandboxLimits(**limits))
            opened.callback(box.close)
            return box

        yield make


@contextlib.contextmanager
def no_descriptors():
    """Let this process open nothing within the block."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_every_signal_that_the_gateway_does_not_send_is_a_crash(sandbox):
    box = sandbox("end_by", children=8)
    ends = await asyncio.gather(
        *(box.call(str(int(number))) for number in ENDING), return_exceptions=True
    )
    assert signal.SIGTRAP in ENDING
    assert {type(end) for end in ends} == {SandboxEnded}
    assert {end.end for end in ends} == {"crashed"}


@pytest.mark.parametrize("place", ["between", "within"])
@pytest.mark.parametrize(
    ("number", "end"), [(signal.SIGTRAP, "crashed"), (signal.SIGXCPU, "out of time")]
)
async def test_a_child_that_ends_within_its_answer_takes_no_other_with_it(
    sandbox, place, number, end
):
    box = sandbox("end_within_the_answer", children=3)
    with pytest.raises(SandboxEnded) as ended:
        await box.call_parts(str(int(number)), place)
    assert ended.value.end == end
    assert box._running.is_alive


async def test_without_descriptors_a_call_is_lost_and_harms_no_other(sandbox):
    box, sleeper = sandbox("echo"), sandbox("sleep", wall_s=300)
    with no_descriptors(), pytest.raises(SandboxLost, match="could not be started") as lost:
        await box.call(b"first")
    assert lost.value.has_begun is False
    waiting = asyncio.create_task(sleeper.call())
    await sleeper.start()
    [child] = await eventually(lambda: children_of(sleeper._running.process.pid))
    with no_descriptors(), pytest.raises(SandboxLost, match="could not be started"):
        await sleeper.call()
    assert is_alive(child)
    assert not waiting.done()
    waiting.cancel()
    assert await box.call(b"now") == b"now"


async def test_a_child_that_cannot_be_forked_is_not_begun_and_the_others_go_on(monkeypatch):
    def fail():
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", fail)
    ours, theirs = socket.socketpair()
    asked, given = socket.socketpair()
    with ours, theirs, asked, given:
        server = ForkServer(
            control=theirs, gateway_pid=os.getppid(), serve=print, limits=SandboxLimits()
        )
        socket.send_fds(ours, [work.PAID], [given.fileno()])
        given.close()
        assert server._fork_children()
        tag, size = work.HEAD.unpack(asked.recv(work.HEAD.size))
        assert (tag, asked.recv(size).partition(b"\n")[0]) == (work.END, b"not started")


async def test_a_child_that_the_machine_stopped_is_lost_and_not_slow(sandbox):
    box = sandbox("sleep", wall_s=2.0, warm=(f"{NAME}:starve_briefly",))
    await box.start()
    task = asyncio.create_task(box.call())
    [child] = await eventually(lambda: children_of(box._running.process.pid))
    # Stopped only once it is a child of its own group: else it would never be one.
    await eventually(lambda: of_process(child, "oom_score_adj").strip() == "1000")
    os.kill(child, signal.SIGSTOP)
    with pytest.raises(SandboxLost, match="killed from outside"):
        await task
