"""A sandboxed child's share of the memory budget."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

import attrs

_on_wait: ContextVar[Callable[[int], None] | None] = ContextVar("on_wait", default=None)


@contextmanager
def notify_of_waits(on_wait: Callable[[int], None]) -> Iterator[None]:
    """Call `on_wait` with 1 when a call in the block starts to wait for memory, then with -1."""
    token = _on_wait.set(on_wait)
    try:
        yield
    finally:
        _on_wait.reset(token)


class Warmed(Protocol):
    """A sandbox, whose warmed process takes memory between its calls."""

    function: str
    # Of its last call, in seconds of `time.monotonic`.
    used_at: float
    # When paid work last started the warmed process.
    paid_start_at: float

    @property
    def is_running(self) -> bool:
        """Whether the warmed process runs."""

    def close(self) -> None:
        """End the warmed process."""


class GaveWay(Exception):
    """The child had to free its memory. Call it again with the same reservation."""


@attrs.define(eq=False, kw_only=True, repr=False)
class Reservation:
    """Memory for one child, which first waits for it."""

    need_bytes: int
    # It cannot take more than this.
    most_bytes: int
    is_paid: bool
    owner: Warmed | None = None
    # Of the input, in bytes.
    size: int = 0
    # Of this group, paid and unpaid each, so many children run at once. None: any number.
    group: object = None
    at_once: int = 1
    came_at: float = attrs.field(factory=time.monotonic, init=False)
    has_given_way: bool = attrs.field(default=False, init=False)
    on_wait: Callable[[int], None] | None = attrs.field(factory=_on_wait.get, init=False)
    waits_for_memory: bool = attrs.field(default=False, init=False)
    granted: asyncio.Future[None] | None = attrs.field(default=None, init=False)
    # A descriptor that shows the child's memory, and the most that it took by this.
    statm: int | None = attrs.field(default=None, init=False)
    taken_bytes: int = attrs.field(default=0, init=False)
    # Whether the child's end is known. Otherwise it was killed.
    has_ended: bool = attrs.field(default=False, init=False)
    limit: asyncio.Timeout | None = attrs.field(default=None, init=False)
    # The error of a call that was cancelled here.
    fate: Exception | None = attrs.field(default=None, init=False)

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """The order in which calls get memory; the last gives way first."""
        return not self.is_paid, not self.has_given_way, self.came_at

    def cancel(self, fate: Exception) -> None:
        """Cancel the work, which then raises the error."""
        if self.limit is not None and self.fate is None and not self.limit.expired():
            self.fate = fate
            self.limit.reschedule(asyncio.get_running_loop().time())

    def note_wait(self, *, waits: bool) -> None:
        """Notify the caller if the call starts or stops to wait for memory."""
        if waits != self.waits_for_memory:
            self.waits_for_memory = waits
            if self.on_wait is not None:
                self.on_wait(1 if waits else -1)
