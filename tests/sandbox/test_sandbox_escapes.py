"""A child that runs a stranger's code: it opens nothing, and leaves nothing behind."""

import asyncio
import os
from pathlib import Path

import pytest

from gateway.sandbox import Sandbox, SandboxEnded, SandboxLimits

FUNCTIONS = "tests.sandbox.sandbox_functions"


async def test_nothing_is_opened_in_the_place_of_something_closed(monkeypatch):
    sandbox = Sandbox(function=f"{FUNCTIONS}:open_in_place_of")
    with pytest.raises(SandboxEnded):
        await sandbox.call(f"/proc/{os.getpid()}/environ")
    sandbox.close()


async def test_what_a_child_has_forked_ends_with_it():
    sandbox = Sandbox(function=f"{FUNCTIONS}:leave_a_child_behind", limits=SandboxLimits())
    pid = int(await sandbox.call())
    async with asyncio.timeout(10):
        while is_running(pid):  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(0.01)
    sandbox.close()


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
