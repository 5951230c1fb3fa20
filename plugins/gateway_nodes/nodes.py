"""This node's heartbeat and leadership among the nodes that share the database."""

import asyncio
import contextlib
import math
import secrets
from collections.abc import Collection

import structlog

from gateway.contracts import Clock
from gateway.contracts.nodes import Fitness, NodeRecord, NodeRecords
from gateway.errors import SettingsError
from gateway.store.sql import Connection, Run, is_off
from gateway_nodes import key_leases, records

_log = structlog.get_logger()
# After this time another node replaces a dead leader.
_LEASE_S = 15.0
_RENEW_EVERY_S = 4.0
# Until a record that another process wrote just before its end is seen by every other one.
_LATE_S = 10.0
# After a crash the machine restarts at once, and watches its old row for this long: a live process
# would update the row twice in that time.
_WATCH_S = 10.0


class SqlNodes:
    """Nodes of a shared database. Implements `contracts.nodes.NodeRecords`."""

    has_others = True

    def __init__(
        self,
        read: Run,
        write: Run,
        name: str,
        fitness: Fitness,
        roles: Collection[str] = tuple(records.ROLES),
        *,
        watch_s: float = _WATCH_S,
    ) -> None:
        self._read = read
        self._write = write
        self.name = name
        self._fitness = fitness
        self._roles = roles
        self.has_workers = True
        # By the loop's clock: until then, the last heartbeat without another seller counts.
        self._alone_until = -math.inf
        # Why this node takes no new work, as of the last heartbeat; empty if it does.
        self.clock_problem = ""
        self._life = secrets.token_hex(8)
        # Its keys are divided among the nodes; None if the settler has none to divide.
        self.settler: key_leases.SharesKeys | None = None
        self._watch_s = watch_s
        self._lease_s = _LEASE_S
        self._keep_every_s = _RENEW_EVERY_S
        self._is_draining = False
        # By the loop's clock.
        self._leads_until = 0.0
        # The processes of the last heartbeat, and when one of them was last found to have ended;
        # `inf` while no other one runs.
        self._lives: frozenset[str] = frozenset()
        self._lost_at = math.inf
        self._keeping: asyncio.Task[None] | None = None

    @property
    def has_other_sellers(self) -> bool:
        return asyncio.get_running_loop().time() >= self._alone_until

    async def register(self, *, now: float) -> None:
        try:
            await self._write(records.register, self.name, self._life, now)
        except records.NameTaken as taken:
            await asyncio.sleep(self._watch_s)
            await self._take_over(now + self._watch_s, taken.seen_at)

    async def _take_over(self, now: float, watched: float) -> None:
        try:
            await self._write(records.register, self.name, self._life, now, watched)
        except records.NameTaken:
            raise SettingsError(
                f"Another gateway runs as node {self.name} on this database. Give each machine a "
                "name of its own: GATEWAY_NODE=b"
            ) from None

    async def nodes(self) -> list[NodeRecord]:
        found: list[NodeRecord] = await self._read(records.find_nodes)
        return found

    # -- leadership

    async def start(self, now: Clock) -> None:
        await self._renew_once(now)
        self._keeping = asyncio.create_task(self._renew_forever(now), name="leadership")

    def leads(self) -> bool:
        return asyncio.get_running_loop().time() < self._leads_until

    async def resume(self, now: Clock) -> None:
        # The loop's clock may have stood still, unlike the lease.
        self._leads_until, self._alone_until = 0.0, -math.inf
        await self._renew_once(now)

    def step_down(self) -> None:
        # The next heartbeat writes a lease that has expired already, and gives up all keys.
        self._lease_s, self._is_draining = 0.0, True

    def may_have_lost(self, seen_at: float) -> bool:
        return seen_at <= self._lost_at + _LATE_S

    async def stop(self) -> None:
        if self._keeping is None:
            return
        self._keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._keeping
        self._leads_until = 0.0
        try:
            await self.unregister()
        except Exception as error:  # noqa: BLE001 - the lease expires anyway
            _log.warning("leadership.not_released", error=type(error).__name__)

    async def _renew_forever(self, now: Clock) -> None:
        while True:
            await asyncio.sleep(self._keep_every_s)
            try:
                await self._renew_once(now)
            except Exception as error:  # noqa: BLE001 - the lease expires, and is taken again
                _log.warning("leadership.not_renewed", error=type(error).__name__)

    async def _renew_once(self, now: Clock) -> None:
        # The lease counts from before the request, because the response may be late.
        asked_at = asyncio.get_running_loop().time()
        had, problem = self.leads(), self.clock_problem
        has = await self.renew(lease_s=self._lease_s, now=now())
        self._leads_until = asked_at + self._lease_s if has else 0.0
        if self.leads() != had:
            _log.info("leadership.changed", leads=not had)
        if bool(self.clock_problem) != bool(problem):
            _log.warning("node.clock", problem=self.clock_problem or "It is right again.")

    async def renew(self, *, lease_s: float, now: float) -> bool:
        """Send a heartbeat, and take or renew the leader lease for `lease_s` seconds.

        `now` is the node's own clock. Returns whether it leads.
        """
        asked_at = asyncio.get_running_loop().time()
        try:
            heartbeat = await self._beat(lease_s, now)
        except records.NameLost:
            self._alone_until = -math.inf
            self._fitness.mark_unfit(
                f"This process stood still, and another one runs as node {self.name} by now. It "
                "sells nothing more and ends. Give each machine a name of its own (GATEWAY_NODE) "
                "if both are to run."
            )
            return False
        ahead_s = heartbeat.ahead_s
        self.clock_problem = records.describe_skew(ahead_s) if is_off(ahead_s, 0.0) else ""
        self.has_workers = heartbeat.has_workers
        is_alone = {*heartbeat.sellers} <= {self.name}
        self._alone_until = asked_at + _LATE_S if is_alone else -math.inf
        self._note_lives(heartbeat.lives)
        return heartbeat.leads

    async def _beat(self, lease_s: float, now: float) -> records.Heartbeat:
        """Write the heartbeat and the leases of keys, in one transaction."""
        settler = self.settler
        keys, busy = (settler.addresses, settler.busy_keys) if settler is not None else ((), ())
        is_draining = self._is_draining

        def beat(db: Connection) -> tuple[records.Heartbeat, key_leases.KeyShare]:
            found = records.renew(db, self.name, self._life, lease_s, self._roles, now)
            shared = key_leases.share(
                db, self.name, found.sellers, keys, busy, found.clock, is_draining=is_draining
            )
            return found, shared

        heartbeat: records.Heartbeat
        shared: key_leases.KeyShare
        heartbeat, shared = await self._write(beat)
        if settler is not None:
            settler.share_keys(shared.own, shared.common, shared.busy)
        return heartbeat

    def _note_lives(self, lives: frozenset[str]) -> None:
        if not lives - {self._life}:
            self._lost_at = math.inf
        elif self._lives - lives or math.isinf(self._lost_at):
            self._lost_at = asyncio.get_running_loop().time()
        self._lives = lives

    async def unregister(self) -> None:
        """Release the leader lease, and record a clean shutdown."""
        await self._write(records.unregister, self.name, self._life)


def share_keys(nodes: NodeRecords, settler: object) -> None:
    """Divide the settler's keys among the nodes, from the first heartbeat on, if it can."""
    if isinstance(nodes, SqlNodes) and isinstance(settler, key_leases.SharesKeys):
        nodes.settler = settler
