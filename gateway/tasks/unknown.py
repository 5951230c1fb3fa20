"""Paid tasks of endpoints that this node does not have.

"I do not know it" is not "no node has it": during a rolling upgrade other nodes have it, and a
plugin that failed to load may be back after the next start. So these tasks wait for hours before
they fail with a refund due.
"""

import asyncio
from collections import Counter

import attrs

from gateway.contracts.parts import Condition
from gateway.store.leases import WaitingTask
from gateway.tasks.resources import Resources

# The most tasks read at once.
_LIMIT = 1_000


@attrs.define
class UnknownTasks:
    """Finds tasks that this node may not lease, and those that have waited for too long."""

    resources: Resources
    # Whether other nodes may have an endpoint that is switched off or retired here.
    has_others: bool = attrs.field(kw_only=True)
    # When this node first saw a task wait, in loop time, by task id.
    _seen_at: dict[str, float] = attrs.field(factory=dict, init=False)

    async def find_overdue(self) -> list[str]:
        """Return the ids of the tasks to fail now, oldest first. Call this every minute."""
        resources, timing = self.resources, self.resources.timing
        waiting = await self._find_waiting()
        now = asyncio.get_running_loop().time()
        self._seen_at = {task.id: self._seen_at.get(task.id, now) for task in waiting}
        oldest = resources.now() - timing.max_unknown_s
        return [
            task.id
            for task in waiting
            if task.created_at <= oldest and now - self._seen_at[task.id] >= timing.unknown_seen_s
        ]

    async def find_conditions(self) -> list[Condition]:
        """Return a condition for each endpoint whose tasks have waited for some minutes."""
        timing = self.resources.timing
        oldest = self.resources.now() - timing.unknown_seen_s
        waiting = [task for task in await self._find_waiting() if task.created_at <= oldest]
        hours = timing.max_unknown_s / 3600
        return [
            Condition(
                name="endpoint_unknown",
                subject=slug,
                level="bad",
                title=f"Paid tasks wait for the endpoint {slug}",
                text=f"{count:,} paid tasks wait, because this machine does not have the endpoint "
                f"{slug}. After {hours:g} hours they fail, and refunds become due.",
                action="Install or enable the endpoint's plugin again (`gateway plugins` shows "
                "why one was left out), or restart a machine that has it.",
            )
            for slug, count in sorted(Counter(task.slug for task in waiting).items())
        ]

    async def _find_waiting(self) -> list[WaitingTask]:
        resources = self.resources
        disabled = resources.catalog.disabled_slugs() if self.has_others else []
        return await resources.queue.find_unknown(
            resources.catalog.slugs(), disabled, now=resources.now(), limit=_LIMIT
        )
