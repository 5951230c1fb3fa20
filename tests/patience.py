"""Waiting with timeouts for busy machines."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

# Seconds, for short operations. A passing test never waits this long. A test needs a shorter one if
# the code under test would give up in that time, which must not pass as success.
PATIENCE_S = 240


async def until(condition: Callable[[], Any], poll_s: float = 0.02) -> Any:
    """Return the result of a condition, plain or asynchronous, once it is true."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = condition()
            found = await found if inspect.isawaitable(found) else found
            if found:
                return found
            await asyncio.sleep(poll_s)


def skip_time(seconds: float) -> None:
    """Advance the running event loop's clock: timers that are due by then fire at once."""
    loop = asyncio.get_running_loop()
    usual = loop.time
    vars(loop)["time"] = lambda: usual() + seconds
