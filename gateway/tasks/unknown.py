"""Paid tasks of endpoints that this node does not have.

"I do not know it" is not "no node has it": during a rolling upgrade other nodes have it, and a
plugin that failed to load may be back after the next start. So these tasks wait for hours before
they fail with a refund due.
"""

import asyncio
from collections.abc import Mapping

import attrs

from gateway.contracts.parts import Condition
from gateway.store.leases import WaitingTask
from gateway.tasks.resources import Resources

# The most tasks read at once.
_LIMIT = 1_000
# The most endpoints that a condition names.
_MOST_NAMED = 10


@attrs.frozen(eq=False, repr=False)
class _Cause:
    """Why tasks wait, and what to do. `name` is the condition's."""

    name: str
    reason: str
    action: str


_MISSING = _Cause(
    "endpoint_unknown",
    "this machine does not have their endpoints, or cannot check their results",
    "Install or enable the endpoints' plugins again (`gateway plugins` shows why one was left "
    "out), or restart a machine that has them.",
)
_SWITCHED_OFF = _Cause(
    "endpoint_switched_off",
    "this machine's settings switch their endpoints off, and another one may still have them",
    "Switch the endpoints on until the tasks are done, or leave them to another machine. "
    "If none has them, refunds become due in time.",
)


@attrs.define(eq=False, repr=False)
class UnknownTasks:
    """Finds tasks that this node may not lease, and those that have waited for too long."""

    resources: Resources
    # Whether other nodes may have an endpoint that is switched off here.
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
        """Return a condition if tasks have waited for some minutes, for each of the two causes."""
        resources, timing = self.resources, self.resources.timing
        off = self._find_switched_off()
        counts = await resources.queue.count_unknown(
            resources.catalog.runnable_slugs(),
            off,
            now=resources.now(),
            before=resources.now() - timing.unknown_seen_s,
        )
        missing = {slug: count for slug, count in counts.items() if slug not in off}
        switched_off = {slug: count for slug, count in counts.items() if slug in off}
        hours = timing.max_unknown_s / 3600
        causes = ((missing, _MISSING), (switched_off, _SWITCHED_OFF))
        return [_describe(found, cause, hours) for found, cause in causes if found]

    async def _find_waiting(self) -> list[WaitingTask]:
        resources = self.resources
        return await resources.queue.find_unknown(
            resources.catalog.runnable_slugs(),
            self._find_switched_off(),
            now=resources.now(),
            limit=_LIMIT,
        )

    def _find_switched_off(self) -> list[str]:
        return self.resources.catalog.switched_off_slugs() if self.has_others else []


def _describe(counts: Mapping[str, int], cause: _Cause, hours: float) -> Condition:
    """Return the condition of the endpoints that tasks wait for; `counts` are tasks by slug."""
    slugs = sorted(counts)
    named, more = ", ".join(slugs[:_MOST_NAMED]), len(slugs) - _MOST_NAMED
    return Condition(
        name=cause.name,
        level="bad",
        title=f"Paid tasks wait for {f'{len(slugs):,} endpoints' if slugs[1:] else named}",
        text=f"{sum(counts.values()):,} paid tasks wait, because {cause.reason}: {named}"
        f"{f' and {more:,} more' if more > 0 else ''}. After {hours:g} hours they fail, and "
        "refunds become due.",
        action=cause.action,
    )
