"""Which of several nodes does the work that one is enough for; a single machine always does it."""

import asyncio
import contextlib
import time

import structlog

from gateway.contracts import Clock
from gateway.contracts.nodes import NodeRecords

_log = structlog.get_logger()

# A leader that dies is followed by another after so long.
_LEASE_S = 15.0
_KEEP_EVERY_S = 4.0


class Leadership:
    """Keeps this node's row, and the lead where it has it."""

    def __init__(
        self,
        nodes: NodeRecords,
        *,
        now: Clock = time.time,
        lease_s: float = _LEASE_S,
        keep_every_s: float = _KEEP_EVERY_S,
    ) -> None:
        self._nodes = nodes
        self._now = now
        self._lease_s = lease_s
        self._keep_every_s = keep_every_s
        self._leads_until = 0.0
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Take or ask for the lead, then keep it while the gateway runs."""
        if not self._nodes.has_others:
            return
        await self._keep()
        self._task = asyncio.create_task(self._keep_forever(), name="leadership")

    def leads(self) -> bool:
        """Whether this node does now what one node is enough for."""
        if not self._nodes.has_others:
            return True
        return asyncio.get_running_loop().time() < self._leads_until

    def step_down(self) -> None:
        """Let another node lead within seconds; this one still shows that it runs."""
        # The next time it is kept, the lease has ended already.
        self._lease_s = 0.0

    async def stop(self) -> None:
        """Give the lead up, so that another node takes it at once."""
        if self._task is None:
            return
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        self._leads_until = 0.0
        try:
            await self._nodes.leave()
        except Exception as error:  # noqa: BLE001 - the lease ends by itself
            _log.warning("leadership.not_given_up", error=type(error).__name__)

    async def _keep_forever(self) -> None:
        while True:
            await asyncio.sleep(self._keep_every_s)
            try:
                await self._keep()
            except Exception as error:  # noqa: BLE001 - the lease ends by itself, and is taken again
                _log.warning("leadership.not_kept", error=type(error).__name__)

    async def _keep(self) -> None:
        # The lease counts from before the question: an answer may be late.
        asked_at = asyncio.get_running_loop().time()
        had, problem = self.leads(), self._nodes.clock_problem
        has = await self._nodes.keep(lease_s=self._lease_s, now=self._now())
        self._leads_until = asked_at + self._lease_s if has else 0.0
        if self.leads() != had:
            _log.info("leadership.changed", leads=not had)
        if bool(self._nodes.clock_problem) != bool(problem):
            _log.warning("node.clock", problem=self._nodes.clock_problem or "It is right again.")
