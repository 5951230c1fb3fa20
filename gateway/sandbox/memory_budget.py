"""One memory budget for all sandboxed processes of this gateway.

Each child reserves memory before it starts: as much as children with inputs of this size took
before, or its limit if none has ended yet. If memory lacks, idle warmed processes end first. Then
the call waits: paid work before unpaid work, the oldest first. A child that needs more than the
budget runs alone. A call that fits may pass one that does not: of its own priority for a few
seconds, and a paid one at any time, because an unpaid child gives way once the paid call then fits.

An estimate may be too low, so the memory of running children is read. If together they outgrow the
budget, the newest of the lowest priority is killed, and called again with its limit reserved: once
at most. A child that needs more than the machine has for it fails as at its own limit.
"""

import asyncio
import math
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from weakref import WeakSet

import attrs

from gateway.errors import ChecksFull
from gateway.sandbox.child.machine import find_budget_bytes
from gateway.sandbox.errors import End, SandboxEnded
from gateway.sandbox.memory_estimates import Known
from gateway.sandbox.memory_reservation import GaveWay, Reservation, Warmed
from gateway.sandbox.process import Loaded, Usage

# After these seconds without memory, unpaid work fails. A call that gave way waits as long again.
# `Timing.validation_s` limits this, the wait for a slot of `FairShare` and the check together.
_UNPAID_WAIT_S = 10.0
# Others of the same priority may pass a call that does not fit until it has waited this long.
_PASSED_S = 5.0
# For these seconds after paid work has started a warmed process, unpaid work does not end it. Else
# it could have each paid call load its modules again.
_KEPT_S = 30.0
# With a smaller budget, as on a machine of 512 MB, idle warmed processes end sooner: the document
# parser's holds 70 MB, and is loaded again in 0.4 s of CPU.
_SHORT_BYTES = 500_000_000
# Between a check, the payment and the paid call, a process stays.
_SHORT_IDLE_S = 30.0
# Between two reads of the children's memory.
_WATCH_S = 0.025
_MAX_STATM_BYTES = 200


def read_resident_bytes(statm: int) -> int | None:
    """Return the resident memory that a descriptor shows; None if its process has ended."""
    try:
        pages = int(os.pread(statm, _MAX_STATM_BYTES, 0).split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


@attrs.define(eq=False, repr=False)
class MemoryBudget:
    """Admits children as memory allows. All calls are of one event loop at a time."""

    total_bytes: int = attrs.field(factory=find_budget_bytes)
    # This machine's memory without the gateway's own.
    machine_bytes: int = attrs.field(factory=find_budget_bytes)
    read_bytes: Callable[[int], int | None] = read_resident_bytes
    short_idle_s: float = _SHORT_IDLE_S
    _known: dict[str, Known] = attrs.field(factory=dict, init=False)
    # Sandboxes whose warmed process may run.
    _warmed: "WeakSet[Warmed]" = attrs.field(factory=WeakSet, init=False)
    _running: list[Reservation] = attrs.field(factory=list, init=False)
    _waiting: list[Reservation] = attrs.field(factory=list, init=False)
    # Descriptors of killed children, which still have memory.
    _dying: dict[int, int] = attrs.field(factory=dict, init=False)
    # Whether this system has no /proc. Then estimates are of no use.
    _is_blind: bool = attrs.field(default=False, init=False)
    _timer: asyncio.TimerHandle | None = attrs.field(default=None, init=False)

    def resize(self, total_bytes: int) -> None:
        """Set the budget; 0: by this machine."""
        self.total_bytes = total_bytes or find_budget_bytes()

    def idle_s(self, wished_s: float) -> float:
        """Return how long a warmed process may idle: less if memory is short."""
        return min(wished_s, self.short_idle_s) if self.total_bytes < _SHORT_BYTES else wished_s

    def reserve(
        self, owner: Warmed, *, size: int, most_bytes: int, is_paid: bool, at_once: int
    ) -> Reservation:
        """Return a reservation for a child with `size` bytes of input, for `held`."""
        estimate = math.inf if self._is_blind else self._of(owner).estimate(size)
        return Reservation(
            need_bytes=int(min(estimate, most_bytes)),
            most_bytes=most_bytes,
            is_paid=is_paid,
            owner=owner,
            size=size,
            group=owner,
            at_once=at_once,
        )

    @asynccontextmanager
    async def held(self, reservation: Reservation) -> AsyncIterator[None]:
        """Wait for the memory, and hold it within the block.

        Raises `ChecksFull` if unpaid work has waited too long, or paid work needs its memory. The
        block is cancelled for that; for `GaveWay`, if the child must be called again; and for
        `SandboxEnded`, if the machine lacks the memory.
        """
        try:
            await self._wait(reservation)
            async with asyncio.timeout(None) as reservation.limit:
                yield
        except TimeoutError:
            if reservation.fate is None:
                raise
            raise reservation.fate from None
        finally:
            self._leave(reservation)

    def note_start(self, owner: Warmed, *, is_paid: bool) -> None:
        """Count the warmed process that a call has started."""
        self._warmed.add(owner)
        if is_paid:
            owner.paid_start_at = time.monotonic()

    def note_loaded(self, owner: Warmed, loaded: Loaded) -> None:
        """Note the size of a warmed process."""
        self._of(owner).note_loaded(loaded)

    def note_child(self, reservation: Reservation, statm: int | None) -> None:
        """Watch a child that has started, by a descriptor of its memory, which is closed later."""
        self._close_statm(reservation)
        reservation.statm = statm
        self._is_blind = statm is None

    def note_end(self, reservation: Reservation, usage: Usage | None) -> None:
        """Note the memory that a child took. None if that is not known."""
        if usage is not None and reservation.owner is not None:
            reservation.has_ended = True
            known = self._of(reservation.owner)
            known.note_end(reservation.size, usage.peak_bytes, reservation.most_bytes)

    def _of(self, owner: Warmed) -> Known:
        return self._known.setdefault(owner.function, Known())

    # -- waiting

    async def _wait(self, reservation: Reservation) -> None:
        self._waiting.append(reservation)
        self._grant()
        if reservation in self._running:
            return
        reservation.granted = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(None if reservation.is_paid else _UNPAID_WAIT_S):
                await reservation.granted
        except TimeoutError:
            raise ChecksFull from None
        finally:
            reservation.note_wait(waits=False)

    def _leave(self, reservation: Reservation) -> None:
        if reservation in self._waiting:
            self._waiting.remove(reservation)
        else:
            self._running.remove(reservation)
            self._note_killed(reservation)
        self._close_statm(reservation)
        if isinstance(reservation.fate, GaveWay):
            reservation.need_bytes, reservation.has_given_way = reservation.most_bytes, True
        reservation.granted = reservation.limit = reservation.fate = None
        reservation.has_ended, reservation.taken_bytes = False, 0
        if reservation.owner is not None:
            reservation.owner.used_at = time.monotonic()
        self._grant()

    def _note_killed(self, reservation: Reservation) -> None:
        """Count a killed child's memory until the kernel has freed it."""
        if reservation.statm is None or reservation.owner is None or reservation.has_ended:
            return
        self._measure(reservation)
        taken_bytes = min(reservation.taken_bytes, reservation.most_bytes)
        self._of(reservation.owner).note_killed(reservation.size, taken_bytes)
        self._dying[reservation.statm] = reservation.taken_bytes
        reservation.statm = None

    def _close_statm(self, reservation: Reservation) -> None:
        if reservation.statm is not None:
            os.close(reservation.statm)
            reservation.statm = None

    def _grant(self) -> None:
        """Start waiting children in order, as many as fit."""
        try:
            self._watch()
            blocked: list[Reservation] = []
            for one in sorted(self._waiting, key=lambda one: one.rank):
                if not self._has_turn(one):
                    one.note_wait(waits=False)
                elif self._may_pass(one, blocked) and self._make_room(one):
                    self._start(one)
                else:
                    one.note_wait(waits=True)
                    blocked.append(one)
            if blocked and blocked[0].is_paid:
                self._displace_unpaid(blocked[0])
        finally:
            self._plan()

    def _has_turn(self, one: Reservation) -> bool:
        """Whether its group may have one more child."""
        same = (other for other in self._running if other.group is one.group)
        held = sum(1 for other in same if other.is_paid == one.is_paid)
        return one.group is None or held < one.at_once

    @staticmethod
    def _may_pass(one: Reservation, blocked: list[Reservation]) -> bool:
        since = time.monotonic() - _PASSED_S
        return all(first.is_paid != one.is_paid or first.came_at > since for first in blocked)

    def _start(self, one: Reservation) -> None:
        self._waiting.remove(one)
        self._running.append(one)
        if one.granted is not None and not one.granted.done():
            one.granted.set_result(None)

    # -- making room

    def _make_room(self, one: Reservation) -> bool:
        """Whether the child fits. Ends idle warmed processes if it does then, or is alone."""
        lacking_bytes = self._used_bytes(one.owner) + one.need_bytes - self.total_bytes
        if lacking_bytes <= 0:
            return True
        idle = self._find_idle(one.owner)
        ended = idle if one.is_paid else [other for other in idle if not _is_kept(other)]
        is_alone = not self._running and not self._dying and len(ended) == len(idle)
        if not is_alone and sum(self._of(other).warmed_bytes for other in ended) < lacking_bytes:
            return False
        self._end(ended, lacking_bytes)
        return True

    def _displace_unpaid(self, paid: Reservation) -> None:
        """Have unpaid children give way to a paid call, if it then fits or is alone."""
        # A process that only loads its modules has no child that could give way.
        unpaid = [one for one in self._running if not one.is_paid and one.need_bytes]
        staying = [one for one in self._running if one not in unpaid]
        owners = {one.owner for one in (*staying, paid)}
        warmed_bytes = sum(self._of(one).warmed_bytes for one in owners if one is not None)
        kept_bytes = warmed_bytes + sum(one.need_bytes for one in staying)
        if staying and kept_bytes + paid.need_bytes > self.total_bytes:
            return
        lacking_bytes = self._used_bytes(paid.owner) + paid.need_bytes - self.total_bytes
        lacking_bytes -= sum(self._of(one).warmed_bytes for one in self._find_idle(paid.owner))
        lacking_bytes -= sum(self._dying.values())
        for one in sorted(unpaid, key=lambda one: one.rank, reverse=True):
            if lacking_bytes > 0:
                one.cancel(ChecksFull())
                lacking_bytes -= one.need_bytes

    def _used_bytes(self, more: Warmed | None = None) -> int:
        """Return the memory of all processes, and of the warmed process that one more needs."""
        owners = {one.owner for one in self._running} | {more}
        warmed = {one for one in owners if one is not None}
        warmed |= {one for one in self._warmed if one.is_running}
        return (
            sum(self._of(one).warmed_bytes for one in warmed)
            + sum(one.need_bytes for one in self._running)
            + sum(self._dying.values())
        )

    def _find_idle(self, owner: Warmed | None = None) -> list[Warmed]:
        """Return the sandboxes with an idle warmed process, the least recently used first."""
        owners = {owner, *(one.owner for one in self._running)}
        idle = [one for one in self._warmed if one.is_running and one not in owners]
        return sorted(idle, key=lambda one: one.used_at)

    def _end(self, idle: list[Warmed], lacking_bytes: int) -> None:
        for one in idle:
            if lacking_bytes <= 0:
                return
            lacking_bytes -= self._of(one).warmed_bytes
            one.close()

    # -- watching

    def _plan(self) -> None:
        """Schedule the next read, if children may outgrow the budget or a call waits."""
        if not self._running and not self._waiting:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        elif self._timer is None and (self._waiting or self._may_outgrow):
            self._timer = asyncio.get_running_loop().call_later(_WATCH_S, self._check)

    @property
    def _may_outgrow(self) -> bool:
        more_bytes = sum(max(0, one.most_bytes - one.need_bytes) for one in self._running)
        return self._used_bytes() + more_bytes > min(self.total_bytes, self.machine_bytes)

    def _check(self) -> None:
        self._timer = None
        self._grant()

    def _watch(self) -> None:
        """Read the children's memory. If they outgrew the budget, one gives way."""
        for statm in list(self._dying):
            # A process that has ended, but is not reaped yet, has no memory.
            if not self.read_bytes(statm):
                os.close(statm)
                del self._dying[statm]
        for one in self._running:
            self._measure(one)
            if one.taken_bytes > self._find_ceiling(one):
                one.cancel(SandboxEnded(End.OUT_OF_MEMORY))
        lacking_bytes = self._used_bytes() - self.total_bytes
        if lacking_bytes <= 0:
            return
        has_unpaid = any(not one.is_paid for one in self._running)
        idle = self._find_idle()
        self._end([one for one in idle if not has_unpaid or not _is_kept(one)], lacking_bytes)
        is_alone = len(self._running) == 1
        if self._used_bytes() <= self.total_bytes or is_alone or self._dying:
            return
        children = [one for one in self._running if one.statm is not None]
        if children and all(one.fate is None for one in self._running):
            max(children, key=lambda one: one.rank).cancel(GaveWay())

    def _measure(self, one: Reservation) -> None:
        """Read the memory that a child takes beyond its warmed process."""
        if one.statm is not None and one.owner is not None:
            resident_bytes = self.read_bytes(one.statm) or 0
            taken_bytes = resident_bytes - self._of(one.owner).shared_bytes
            one.taken_bytes = max(one.taken_bytes, taken_bytes)
            one.need_bytes = max(one.need_bytes, one.taken_bytes)

    def _find_ceiling(self, one: Reservation) -> int:
        """Return the most for a child that runs alone: a small budget refuses no file."""
        warmed_bytes = self._of(one.owner).warmed_bytes if one.owner is not None else 0
        return self.machine_bytes - warmed_bytes


def _is_kept(warmed: Warmed) -> bool:
    """Whether unpaid work must not end a warmed process."""
    return time.monotonic() - warmed.paid_start_at < _KEPT_S


SHARED = MemoryBudget()
"""The budget of every sandbox in this process."""
