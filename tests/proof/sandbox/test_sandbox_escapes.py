"""A child that runs hostile code: it opens, reaches and leaves nothing."""

import ctypes
import os
import sys

import pytest

from gateway.sandbox import Sandbox, SandboxEnded
from tests.proof.sandbox import hostile_functions
from tests.proof.sandbox.processes import children_of, eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a filter that only Linux has")

FUNCTIONS = "tests.proof.sandbox.sandbox_functions"
HOSTILE = hostile_functions.__name__


@pytest.fixture(scope="module")
def hostile():
    sandbox = Sandbox(function=f"{HOSTILE}:attempt", warm=(HOSTILE,))
    yield sandbox
    sandbox.close()


async def outcome(sandbox, name):
    secret = ctypes.create_string_buffer(b"0x-the-gateways-key")
    try:
        return await sandbox.call(name, str(os.getpid()), str(ctypes.addressof(secret)))
    except SandboxEnded as ended:
        return ended.end


@pytest.mark.parametrize("name", hostile_functions.ENDING)
async def test_a_child_that_reaches_for_others_is_ended(hostile, name):
    assert await outcome(hostile, name) == "crashed"


@pytest.mark.parametrize("name", hostile_functions.FAILING)
async def test_a_child_is_refused_what_computing_does_not_take(hostile, name):
    assert await outcome(hostile, name) == b"refused"


async def test_a_child_may_start_threads_and_they_are_filtered_too():
    sandbox = Sandbox(function=f"{HOSTILE}:start_a_thread", warm=(HOSTILE,))
    assert await sandbox.call() == b"[True]"
    sandbox.close()


async def test_the_warmed_process_hides_its_memory_from_its_children():
    warm = (f"{HOSTILE}:look_at_the_warmed_process",)
    sandbox = Sandbox(function=f"{HOSTILE}:tell_what_was_seen", warm=warm)
    assert await sandbox.call() == b"[0]"
    sandbox.close()


async def test_nothing_is_opened_in_the_place_of_something_closed(monkeypatch):
    sandbox = Sandbox(function=f"{FUNCTIONS}:open_in_place_of")
    with pytest.raises(SandboxEnded):
        await sandbox.call(f"/proc/{os.getpid()}/environ")
    sandbox.close()


async def test_what_a_child_has_forked_ends_with_it():
    sandbox = Sandbox(function=f"{FUNCTIONS}:leave_a_child_behind")
    with pytest.raises(SandboxEnded):
        await sandbox.call()
    await eventually(lambda: not children_of(sandbox._running.process.pid))
    sandbox.close()
