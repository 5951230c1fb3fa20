"""Inspects other processes through /proc, for tests of leftovers after one dies."""

import asyncio
import os
import time
from pathlib import Path

import pytest

only_root_looks_inside = pytest.mark.skipif(
    os.geteuid() != 0, reason="the gateway and its children hide from others"
)


def of_process(pid, name):
    return Path(f"/proc/{pid}/{name}").read_text()


def children_of(pid, thread=None):
    return [int(child) for child in of_process(pid, f"task/{thread or pid}/children").split()]


def open_files_of(pid):
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def is_alive(pid):
    try:
        return of_process(pid, "stat").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def eventually(condition, seconds=30):
    """Wait until a condition is true, and return its result."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(0.02)
    return found
