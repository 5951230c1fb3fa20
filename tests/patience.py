"""Waiting for what happens: on a machine that does much else, everything takes its time."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

# Seconds, for what takes a moment. A test that passes never waits so long. It has less patience
# where the code under test would give up by itself meanwhile: that must not look like success.
PATIENCE_S = 240


async def until(condition: Callable[[], Any], look_s: float = 0.02) -> Any:
    """Return what a condition, plain or asynchronous, returns once that is true."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = condition()
            found = await found if inspect.isawaitable(found) else found
            if found:
                return found
            await asyncio.sleep(look_s)


def skip_time(seconds: float) -> None:
    """Put the running event loop's clock forward: timers that are due by then fire at once."""
    loop = asyncio.get_running_loop()
    usual = loop.time
    vars(loop)["time"] = lambda: usual() + seconds
