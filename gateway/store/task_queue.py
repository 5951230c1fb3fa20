"""The task queue as a part of the store: each method runs one function of `tasks`."""

from collections.abc import Sequence

from gateway.contracts import Cost, Lease
from gateway.domain import Handle, StoredResult
from gateway.store import tasks
from gateway.store.rows import RunWrite


class SqlQueue:
    """Tasks from queued to ended. Implements `contracts.TaskQueue`."""

    def __init__(
        self, write: RunWrite, query: RunWrite, read_row: RunWrite, node: str | None
    ) -> None:
        self._write = write
        self._query = query
        self._read_row = read_row
        # None: the only node of its database.
        self._node = node

    async def claim(
        self, limit: int, *, lease_s: float, now: float, resting: Sequence[str] = ()
    ) -> list[Lease]:
        leases: list[Lease] = await self._write(
            tasks.lease_due, limit, lease_s, now, resting, self._node
        )
        return leases

    async def begin_submit(self, lease: Lease, *, now: float) -> bool:
        return bool(await self._write(tasks.begin_submit, lease, now))

    async def save_handle(self, lease: Lease, handle: Handle) -> bool:
        return bool(await self._write(tasks.save_handle, lease, handle))

    async def complete(
        self,
        lease: Lease,
        result: StoredResult,
        *,
        expires_at: float,
        now: float,
        cost: Cost | None = None,
        provider: str | None = None,
    ) -> bool:
        return bool(
            await self._write(tasks.complete, lease, result, expires_at, now, cost, provider)
        )

    async def fail(
        self,
        lease: Lease,
        *,
        details: str,
        error: str,
        now: float,
        reason: str | None = None,
        provider: str | None = None,
    ) -> bool:
        return bool(await self._write(tasks.fail, lease, details, error, now, reason, provider))

    async def retry(self, lease: Lease, *, delay_s: float, now: float, costs_attempt: bool) -> bool:
        return bool(await self._write(tasks.retry, lease, delay_s, now, int(not costs_attempt)))

    async def give_back(self, lease: Lease) -> bool:
        return bool(await self._write(tasks.give_back, lease))

    async def extend(
        self,
        lease: Lease,
        *,
        lease_s: float,
        now: float,
        progress: float | None,
        note: str | None = None,
    ) -> bool:
        return bool(await self._write(tasks.extend, lease, lease_s, now, progress, note))

    async def recover(self, *, now: float) -> int:
        return int(await self._write(tasks.recover, now, self._node))

    async def next_due(self, resting: Sequence[str] = (), *, now: float) -> float | None:
        # Where no slug rests it is the first entry of an index; else every task that waits is read.
        run = self._query if resting else self._read_row
        due: float | None = await run(tasks.next_due, resting, now)
        return due

    async def depth(self) -> dict[str, int]:
        depth: dict[str, int] = await self._query(tasks.depth)
        return depth
