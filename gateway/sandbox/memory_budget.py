"""One memory budget for all sandboxed processes of this gateway.

Each child reserves memory before it starts: as much as children with inputs of this size took
before, or its limit if none has ended yet. If memory lacks, idle warmed processes end first. Then
the call waits: paid work before unpaid work, the oldest first. A child that needs more than the
budget runs alone.

An estimate may be too low. While the limits of running children exceed the budget, their memory is
read. A child that outgrows its reservation and the budget is killed, and called again with its
limit reserved, so a call is repeated once at most. A child that needs more than the machine has for
it fails as at its own limit.
"""

import asyncio
import math
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Protocol
from weakref import WeakSet

import attrs

from gateway.errors import ChecksFull
from gateway.sandbox.child.machine import find_memory_bytes
from gateway.sandbox.errors import End, SandboxEnded
from gateway.sandbox.process import Usage

# Memory that the gateway's own process needs, for code, request bodies and results.
_GATEWAY_BYTES = 350_000_000
# After these seconds without memory, unpaid work fails. With the wait for a slot, that is within
# `Timing.validation_s`.
_UNPAID_WAIT_S = 10.0
# Paid work that came this much later goes after unpaid work, which therefore never starves.
_UNPAID_LATER_S = 5.0
# An estimate exceeds earlier peaks by a quarter, and by pages that are no longer shared.
_MARGIN, _MARGIN_BYTES = 1.25, 8_000_000
# Each child lowers the remembered peak by this share of the difference to its own.
_FORGOTTEN = 1 / 8
# A warmed process that has not reported its size.
_UNKNOWN_WARMED_BYTES = 40_000_000
# Between two reads of the children's memory.
_WATCH_S = 0.025
# The kernel takes this long to free the memory of a killed child.
_DYING_S = 0.1
_MAX_STATM_BYTES = 200

_on_wait: ContextVar[Callable[[int], None] | None] = ContextVar("on_wait", default=None)


@contextmanager
def notify_of_waits(on_wait: Callable[[int], None]) -> Iterator[None]:
    """Call `on_wait` with 1 when a call in the block starts to wait for memory, then with -1."""
    token = _on_wait.set(on_wait)
    try:
        yield
    finally:
        _on_wait.reset(token)


def default_budget_bytes() -> int:
    """Return this machine's memory without the gateway's own, or half of a small machine's."""
    machine_bytes = find_memory_bytes()
    return max(machine_bytes - _GATEWAY_BYTES, machine_bytes // 2)


def read_resident_bytes(statm: int) -> int | None:
    """Return the resident memory that a descriptor shows; None if its process has ended."""
    try:
        pages = int(os.pread(statm, _MAX_STATM_BYTES, 0).split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


class Warmed(Protocol):
    """A sandbox, whose warmed process takes memory between its calls."""

    function: str
    # Of its last call, in seconds of `time.monotonic`.
    used_at: float

    @property
    def is_running(self) -> bool:
        """Whether the warmed process runs."""

    def close(self) -> None:
        """End the warmed process."""


@attrs.define
class _Known:
    """The memory that processes of one function took."""

    warmed_bytes: int = _UNKNOWN_WARMED_BYTES
    # The part of it that each child shares until it writes there.
    shared_bytes: int = 0
    # What children took beyond that, by the number of binary digits of their input's size.
    peaks: dict[int, int] = attrs.field(factory=dict)

    def estimate(self, size: int) -> float:
        """Return the memory of a child; infinite if none is known.

        A larger input than the known ones takes more in proportion.
        """
        digits = size.bit_length()
        if not self.peaks:
            return math.inf
        known = min((one for one in self.peaks if one >= digits), default=max(self.peaks))
        peak = max(peak for one, peak in self.peaks.items() if one <= known)
        return (peak << max(0, digits - known)) * _MARGIN + _MARGIN_BYTES

    def note(self, size: int, usage: Usage) -> None:
        """Correct the estimates by a child that has ended."""
        if usage.warmed_bytes:
            self.warmed_bytes, self.shared_bytes = usage.warmed_bytes, usage.shared_bytes
        if usage.peak_bytes:
            peak, digits = max(0, usage.peak_bytes - self.shared_bytes), size.bit_length()
            before = self.peaks.get(digits, 0)
            self.peaks[digits] = max(peak, int(before - (before - peak) * _FORGOTTEN))


class GaveWay(Exception):
    """The child outgrew the budget. Call it again with the same reservation, which now fits it."""


@attrs.define(eq=False, kw_only=True)
class Reservation:
    """Memory for one child, which first waits for it."""

    need_bytes: int
    # It cannot take more than this.
    most_bytes: int
    is_paid: bool
    owner: Warmed | None = None
    # Of the input, in bytes.
    size: int = 0
    came_at: float = attrs.field(factory=time.monotonic, init=False)
    granted: asyncio.Future[None] | None = attrs.field(default=None, init=False)
    # A descriptor that shows the child's memory.
    statm: int | None = attrs.field(default=None, init=False)
    has_begun: bool = attrs.field(default=False, init=False)
    # Of the child's end; None: it was killed.
    usage: Usage | None = attrs.field(default=None, init=False)
    limit: asyncio.Timeout | None = attrs.field(default=None, init=False)
    has_outgrown: bool = attrs.field(default=False, init=False)
    gives_way: bool = attrs.field(default=False, init=False)
    is_excessive: bool = attrs.field(default=False, init=False)

    @property
    def rank(self) -> float:
        """The time by which it is ordered; the lowest is the next."""
        return self.came_at + (0.0 if self.is_paid else _UNPAID_LATER_S)

    def close_statm(self) -> None:
        """Stop reading the child's memory."""
        if self.statm is not None:
            os.close(self.statm)
            self.statm = None

    def cancel(self, *, is_excessive: bool = False) -> None:
        """Cancel the work: for good, or to repeat it with the most that it can take."""
        if self.limit is not None and not self.limit.expired():
            self.gives_way, self.is_excessive = not is_excessive, is_excessive
            self.limit.reschedule(asyncio.get_running_loop().time())


@attrs.define(eq=False)
class MemoryBudget:
    """Admits children as memory allows. All calls are of one event loop at a time."""

    total_bytes: int = attrs.field(factory=default_budget_bytes)
    # This machine's memory without the gateway's own.
    machine_bytes: int = attrs.field(factory=default_budget_bytes)
    read_bytes: Callable[[int], int | None] = read_resident_bytes
    _known: dict[str, _Known] = attrs.field(factory=dict, init=False)
    # Sandboxes whose warmed process may run.
    _warmed: "WeakSet[Warmed]" = attrs.field(factory=WeakSet, init=False)
    _running: list[Reservation] = attrs.field(factory=list, init=False)
    _waiting: list[Reservation] = attrs.field(factory=list, init=False)
    # Bytes of killed children, and until when they count.
    _dying: list[tuple[float, int]] = attrs.field(factory=list, init=False)
    # Whether this system has no /proc. Then estimates are of no use.
    _is_blind: bool = attrs.field(default=False, init=False)
    _watched_at: float = attrs.field(default=0.0, init=False)
    _timer: asyncio.TimerHandle | None = attrs.field(default=None, init=False)

    def resize(self, total_bytes: int) -> None:
        """Set the budget; 0: by this machine."""
        self.total_bytes = total_bytes or default_budget_bytes()

    def reserve(self, owner: Warmed, *, size: int, most_bytes: int, is_paid: bool) -> Reservation:
        """Return a reservation for a child with `size` bytes of input, for `held`."""
        estimate = math.inf if self._is_blind else self._of(owner).estimate(size)
        return Reservation(
            need_bytes=int(min(estimate, most_bytes)),
            most_bytes=most_bytes,
            is_paid=is_paid,
            owner=owner,
            size=size,
        )

    @asynccontextmanager
    async def held(self, reservation: Reservation) -> AsyncIterator[None]:
        """Wait for the memory, and hold it within the block.

        Raises `ChecksFull` if unpaid work has waited too long. The block is cancelled for
        `GaveWay`, if the child must be called again, and for `SandboxEnded`, if the machine lacks
        the memory.
        """
        try:
            await self._wait(reservation)
            async with asyncio.timeout(None) as reservation.limit:
                yield
        except TimeoutError:
            if reservation.is_excessive:
                raise SandboxEnded(End.OUT_OF_MEMORY) from None
            if not reservation.gives_way:
                raise
            reservation.need_bytes = reservation.most_bytes
            raise GaveWay from None
        finally:
            self._leave(reservation)

    def note_start(self, owner: Warmed) -> None:
        """Count the warmed process of a sandbox from now on."""
        self._warmed.add(owner)

    def note_child(self, reservation: Reservation, statm: int | None) -> None:
        """Watch a child that has started, by a descriptor of its memory, which is closed later."""
        reservation.close_statm()
        reservation.statm, reservation.has_begun = statm, True
        self._is_blind = statm is None

    def note_end(self, reservation: Reservation, usage: Usage | None) -> None:
        """Note the memory that a child took. None if that is not known."""
        reservation.usage = usage
        if usage is not None and reservation.owner is not None:
            self._of(reservation.owner).note(reservation.size, usage)

    def _of(self, owner: Warmed) -> _Known:
        return self._known.setdefault(owner.function, _Known())

    # -- waiting

    async def _wait(self, reservation: Reservation) -> None:
        self._waiting.append(reservation)
        self._grant()
        if reservation in self._running:
            return
        reservation.granted = asyncio.get_running_loop().create_future()
        on_wait = _on_wait.get() or (lambda _: None)
        on_wait(1)
        try:
            async with asyncio.timeout(None if reservation.is_paid else _UNPAID_WAIT_S):
                await reservation.granted
        except TimeoutError:
            raise ChecksFull from None
        finally:
            on_wait(-1)

    def _leave(self, reservation: Reservation) -> None:
        if reservation in self._waiting:
            self._waiting.remove(reservation)
        else:
            self._running.remove(reservation)
            if reservation.has_begun and reservation.usage is None:
                self._dying.append((time.monotonic() + _DYING_S, reservation.need_bytes))
        reservation.close_statm()
        reservation.granted = reservation.limit = None
        reservation.has_begun = reservation.has_outgrown = False
        reservation.gives_way = reservation.is_excessive = False
        if reservation.owner is not None:
            reservation.owner.used_at = time.monotonic()
        self._grant()

    def _grant(self) -> None:
        """Start waiting children in order, as many as fit."""
        while self._waiting:
            first = min(self._waiting, key=lambda one: one.rank)
            if not self._make_room(first):
                break
            self._waiting.remove(first)
            self._running.append(first)
            if first.granted is not None and not first.granted.done():
                first.granted.set_result(None)
        self._plan()

    def _make_room(self, reservation: Reservation) -> bool:
        """Whether the child fits. Ends idle warmed processes if it does then, or is alone."""
        lacking_bytes = self._used_bytes(reservation) + reservation.need_bytes - self.total_bytes
        if lacking_bytes <= 0:
            return True
        idle = self._find_idle(reservation.owner)
        is_alone = not self._running and not self._dying
        if not is_alone and sum(self._of(one).warmed_bytes for one in idle) < lacking_bytes:
            return False
        self._end_idle(idle, lacking_bytes)
        return True

    def _used_bytes(self, more: Reservation | None = None) -> int:
        """Return the memory of all processes, and of the warmed process that one more needs."""
        now = time.monotonic()
        self._dying = [one for one in self._dying if one[0] > now]
        owners = {one.owner for one in (*self._running, *filter(None, [more])) if one.owner}
        warmed = owners | {one for one in self._warmed if one.is_running}
        return (
            sum(self._of(one).warmed_bytes for one in warmed)
            + sum(one.need_bytes for one in self._running)
            + sum(dying_bytes for _, dying_bytes in self._dying)
        )

    def _find_idle(self, owner: Warmed | None = None) -> list[Warmed]:
        """Return the sandboxes with an idle warmed process, the least recently used first."""
        owners = {owner, *(one.owner for one in self._running)}
        idle = [one for one in self._warmed if one.is_running and one not in owners]
        return sorted(idle, key=lambda one: one.used_at)

    def _end_idle(self, idle: list[Warmed], lacking_bytes: int) -> None:
        for one in idle:
            if lacking_bytes <= 0:
                return
            lacking_bytes -= self._of(one).warmed_bytes
            one.close()

    # -- watching

    def _plan(self) -> None:
        """Schedule the next check, if children may outgrow the budget or killed ones are freed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = time.monotonic()
        delays_s = [until - now for until, _ in self._dying] if self._waiting else []
        if self._may_outgrow:
            delays_s.append(self._watched_at + _WATCH_S - now)
        if delays_s:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, min(delays_s)), self._check)

    @property
    def _may_outgrow(self) -> bool:
        running = self._running
        more_bytes = sum(one.most_bytes - one.need_bytes for one in running)
        return any(one.most_bytes > self._find_ceiling(one) for one in running) or (
            len(running) > 1 and self._used_bytes() + more_bytes > self.total_bytes
        )

    def _check(self) -> None:
        self._watch()
        self._grant()

    def _watch(self) -> None:
        """Read the children's memory, and have one that outgrew the budget give way."""
        self._watched_at = time.monotonic()
        for one in self._running:
            taken_bytes = self._read_taken(one)
            if taken_bytes > self._find_ceiling(one):
                one.cancel(is_excessive=True)
            elif taken_bytes > one.need_bytes:
                one.need_bytes, one.has_outgrown = min(taken_bytes, one.most_bytes), True
        lacking_bytes = self._used_bytes() - self.total_bytes
        self._end_idle(self._find_idle(), lacking_bytes)
        if self._used_bytes() <= self.total_bytes or len(self._running) == 1:
            return
        grown = [one for one in self._running if one.has_outgrown]
        if grown and not any(one.gives_way for one in grown):
            max(grown, key=lambda one: one.rank).cancel()

    def _find_ceiling(self, one: Reservation) -> int:
        """Return the most for a child that runs alone: a small budget refuses no file."""
        warmed_bytes = self._of(one.owner).warmed_bytes if one.owner is not None else 0
        return max(self.total_bytes, self.machine_bytes) - warmed_bytes

    def _read_taken(self, one: Reservation) -> int:
        """Return the memory that a child takes beyond its warmed process; 0 if unknown."""
        resident_bytes = None if one.statm is None else self.read_bytes(one.statm)
        if resident_bytes is None or one.owner is None:
            return 0
        return resident_bytes - self._of(one.owner).shared_bytes


SHARED = MemoryBudget()
"""The budget of every sandbox in this process."""
