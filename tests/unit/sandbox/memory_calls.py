"""Calls that hold memory of a budget, for tests; no process runs."""

import asyncio
import contextlib
import math

from gateway.sandbox.memory_reservation import Reservation
from gateway.sandbox.process import Loaded, Usage

MB = 10**6


class Warmed:
    """A sandbox with a warmed process of 50 MB, without processes."""

    def __init__(self, budget, function, *, warmed=50, used_at=0.0, is_running=True):
        self.function, self.used_at, self.is_running = function, used_at, is_running
        self.budget, self.warmed, self.paid_start_at = budget, warmed, -math.inf
        budget.note_start(self, is_paid=False)
        budget.note_loaded(self, Loaded(warmed * MB, warmed * MB, 1.0))

    def learn(self, *, peak, size=1000, most=600):
        self.report((self.warmed + peak) * MB, size=size, most=most)

    def report(self, peak_bytes, *, size=1000, most=600):
        """End a child, which reports this peak."""
        self.budget.note_end(self.reserve(size=size, most=most), Usage(0.1, peak_bytes))

    def reserve(self, *, size=1000, most=600, is_paid=True):
        return self.budget.reserve(
            self, size=size, most_bytes=most * MB, is_paid=is_paid, at_once=100
        )

    def close(self):
        self.is_running = False


class Child:
    """A call that holds memory until the test ends it."""

    def __init__(self, budget, need, *, most=None, is_paid=True, owner=None, **group):
        most = need if most is None else most
        self.budget, self.ends, self.runs = budget, asyncio.Event(), False
        self.reservation = Reservation(
            need_bytes=need * MB, most_bytes=most * MB, is_paid=is_paid, owner=owner, **group
        )
        self.task = asyncio.create_task(self.run())

    async def run(self):
        async with self.budget.held(self.reservation):
            self.runs = True
            try:
                await self.ends.wait()
            finally:
                self.runs = False

    async def end(self):
        self.reservation.has_ended = True
        self.ends.set()
        await self.task
        await settle()

    async def cancel(self):
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task
        await settle()


async def settle():
    for _ in range(10):
        await asyncio.sleep(0)


async def started(budget, *needs, **about):
    children = []
    for need in needs:
        children.append(Child(budget, need, **about))
        await settle()
    return children


async def is_free(budget):
    """Whether a child that needs the whole budget starts at once."""
    (child,) = await started(budget, budget.total_bytes // MB)
    try:
        return child.runs
    finally:
        await child.cancel()
