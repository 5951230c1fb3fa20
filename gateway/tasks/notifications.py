"""Wakes requests that wait for a task, and limits their number."""

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

import attrs

from gateway.contracts.nodes import WakeHandlers, Wakes

_POLL_SLOTS = 32


class TaskNotifications:
    """Wakes requests that wait for a task. They then read it from the store."""

    def __init__(self) -> None:
        self._waiting: defaultdict[str, set[asyncio.Event]] = defaultdict(set)

    def post(self, task_id: str) -> None:
        """Wake the requests that wait for this task."""
        for event in self._waiting.get(task_id, ()):
            event.set()

    def post_all(self) -> None:
        """Wake all waiting requests."""
        for task_id in self._waiting:
            self.post(task_id)

    @contextlib.contextmanager
    def subscribed(self, task_id: str) -> Iterator["Subscription"]:
        """Subscribe to the notifications of this task.

        Subscribe before reading the task, or a notification in between is lost.
        """
        event = asyncio.Event()
        self._waiting[task_id].add(event)
        try:
            yield Subscription(event)
        finally:
            self._waiting[task_id].discard(event)
            if not self._waiting[task_id]:
                del self._waiting[task_id]


class Subscription:
    """One request's subscription to its task."""

    def __init__(self, event: asyncio.Event) -> None:
        self._event = event

    async def wait(self, timeout_s: float) -> None:
        """Return after a new notification, or after `timeout_s`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        self._event.clear()


def seconds_to_poll(poll_s: float) -> float:
    """Return the seconds until a waiting request reads its task, at most `poll_s`.

    They are aligned to a few shared moments, so that many requests share one read.
    """
    slot_s = poll_s / _POLL_SLOTS
    now = asyncio.get_running_loop().time()
    return (now + poll_s) // slot_s * slot_s - now


class LongPolls:
    """Limits waiting requests, because a proxy in front limits connections."""

    def __init__(self, most: int, most_per_address: int) -> None:
        self._most = most
        self._most_per_address = most_per_address
        self._by_address: Counter[str] = Counter()

    @property
    def waiting(self) -> int:
        """The number of waiting requests."""
        return self._by_address.total()

    @contextlib.contextmanager
    def counted(self, address: str) -> Iterator[bool]:
        """Count a request inside the block and yield True, or yield False if too many wait."""
        is_full = self.waiting >= self._most
        if is_full or self._by_address[address] >= self._most_per_address:
            yield False
            return
        self._by_address[address] += 1
        try:
            yield True
        finally:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]


@attrs.define(kw_only=True, eq=False, repr=False)
class Announcer:
    """Wakes workers, waiting requests and event readers, on this node and the others."""

    # None if no other node shares the database.
    wakes: Wakes | None
    notifications: TaskNotifications
    # Set later, because workers and gateway need the announcer first.
    wake_workers: Callable[[], None] = lambda: None
    wake_events: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Start to listen to the other nodes."""
        if self.wakes is not None:
            wake, on_ended = self.wake_workers, self._wake_for_end
            self.wakes.start(WakeHandlers(on_queued=wake, on_ended=on_ended, on_gap=self._wake_all))

    def queued(self) -> None:
        """Announce a queued task. Call this after the commit."""
        self.wake_workers()
        if self.wakes is not None:
            self.wakes.post_queued()

    def ended(self, task_id: str) -> None:
        """Announce a task that has ended or was dropped. Call this after the commit."""
        self._wake_for_end(task_id)
        if self.wakes is not None:
            self.wakes.post_ended(task_id)

    def _wake_for_end(self, task_id: str) -> None:
        self.notifications.post(task_id)
        self.wake_events()

    def _wake_all(self) -> None:
        self.wake_workers()
        self.notifications.post_all()
        self.wake_events()
