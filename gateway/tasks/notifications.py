"""Wakes the requests that wait for a task, and limits how many wait."""

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

import attrs

from gateway.contracts.nodes import Heard, Wakes

_LOOK_SLOTS = 32


class TaskNotifications:
    """Wakes the requests that wait for a task; they read in the store what happened."""

    def __init__(self) -> None:
        self._waiting: defaultdict[str, set[asyncio.Event]] = defaultdict(set)

    def post(self, task_id: str) -> None:
        """Wake all requests that wait for this task."""
        for event in self._waiting.get(task_id, ()):
            event.set()

    def post_all(self) -> None:
        """Wake all requests that wait, for whatever task."""
        for task_id in self._waiting:
            self.post(task_id)

    @contextlib.contextmanager
    def subscribed(self, task_id: str) -> Iterator["Subscription"]:
        """Yield a subscription to the notifications of this task inside the block.

        Subscribe before you read the task, or a notification between the two is lost.
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
    """The notifications of one request about its task."""

    def __init__(self, event: asyncio.Event) -> None:
        self._event = event

    async def wait(self, timeout_s: float) -> None:
        """Return after a notification that no earlier wait returned for, or after `timeout_s`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        self._event.clear()


def seconds_to_look(look_s: float) -> float:
    """Return the seconds until a waiting request reads its task: at most `look_s`.

    Many requests read at the same few moments, so that they share their reads.
    """
    slot_s = look_s / _LOOK_SLOTS
    now = asyncio.get_running_loop().time()
    return (now + look_s) // slot_s * slot_s - now


class LongPolls:
    """Limits the requests that wait for a task: a proxy in front has a limit of connections."""

    def __init__(self, most: int, most_per_address: int) -> None:
        self._most = most
        self._most_per_address = most_per_address
        self._by_address: Counter[str] = Counter()

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return self._by_address.total()

    @contextlib.contextmanager
    def counted(self, address: str) -> Iterator[bool]:
        """Count a request inside the block and yield True.

        If too many requests wait already, count nothing and yield False.
        """
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


def _nothing() -> None: ...


@attrs.define(kw_only=True)
class Announcer:
    """Wakes workers, waiting requests and readers of events, here and on nodes that listen."""

    # None if no other node shares the database.
    wakes: Wakes | None
    notifications: TaskNotifications
    # Set once the workers and the gateway exist: both need the announcer first.
    wake_workers: Callable[[], None] = _nothing
    wake_events: Callable[[], None] = _nothing

    def start(self) -> None:
        """Listen to the other nodes from now on."""
        if self.wakes is not None:
            self.wakes.start(
                Heard(
                    on_queued=self.wake_workers, on_ended=self._tell_of_end, on_gap=self._tell_all
                )
            )

    def queued(self) -> None:
        """Announce a queued task; call this after the write is committed."""
        self.wake_workers()
        if self.wakes is not None:
            self.wakes.post_queued()

    def ended(self, task_id: str) -> None:
        """Announce a task that has ended or was dropped; call this after the write is committed."""
        self._tell_of_end(task_id)
        if self.wakes is not None:
            self.wakes.post_ended(task_id)

    def _tell_of_end(self, task_id: str) -> None:
        self.notifications.post(task_id)
        self.wake_events()

    def _tell_all(self) -> None:
        self.wake_workers()
        self.notifications.post_all()
        self.wake_events()
