"""Tells those who wait for a task that something happened to it."""

import asyncio
from collections import defaultdict


class Notices:
    """Wakes the requests that wait for a task; the store, not this, says what happened."""

    def __init__(self) -> None:
        self._waiting: defaultdict[str, set[asyncio.Event]] = defaultdict(set)

    def post(self, task_id: str) -> None:
        """Wake whoever waits for this task."""
        for event in self._waiting.get(task_id, ()):
            event.set()

    async def wait(self, task_id: str, timeout_s: float) -> None:
        """Return after the next notice of this task, or after `timeout_s` seconds."""
        event = asyncio.Event()
        self._waiting[task_id].add(event)
        try:
            async with asyncio.timeout(timeout_s):
                await event.wait()
        except TimeoutError:
            pass
        finally:
            self._waiting[task_id].discard(event)
            if not self._waiting[task_id]:
                del self._waiting[task_id]
