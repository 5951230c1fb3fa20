"""The nodes that share a database: their records, leadership, and notifications."""

from collections.abc import Callable
from typing import Protocol

import attrs

from gateway.contracts import Clock


@attrs.frozen(kw_only=True)
class NodeRecord:
    """A node that runs, or ran, on this database. Times are Unix seconds."""

    name: str
    version: str
    started_at: float
    seen_at: float
    # Whether it does the work that only one node does.
    is_leader: bool
    # Whether it shut down cleanly at `seen_at`, so that its absence is no problem.
    is_stopped: bool = False
    # Its roles among `web`, `worker` and `signer`, in this order; empty once it is gone.
    roles: tuple[str, ...] = ()


class NodeRecords(Protocol):
    """The nodes of one database. On SQLite there is one, and it always leads."""

    @property
    def name(self) -> str:
        """This node's name; empty if the database cannot be shared."""
        ...

    @property
    def has_others(self) -> bool:
        """Whether other nodes may use the database."""
        ...

    @property
    def has_workers(self) -> bool:
        """Whether any node runs workers, as of this node's last heartbeat."""
        ...

    @property
    def has_other_sellers(self) -> bool:
        """Whether other nodes may sell, as of a recent heartbeat; True without one."""
        ...

    async def register(self, *, now: float) -> None:
        """Register this node at its start; `now` is its own clock.

        Raises `SettingsError` if another process runs under its name, or if its clock is off.
        """
        ...

    async def nodes(self) -> list[NodeRecord]:
        """Return every node that was seen in the last day, by name."""
        ...

    async def start(self, now: Clock) -> None:
        """Send heartbeats, and take or keep the leader lease if possible, until `stop`.

        `now` is the node's own clock.
        """
        ...

    def leads(self) -> bool:
        """Whether this node is the leader now."""
        ...

    async def resume(self, now: Clock) -> None:
        """Lead no more until a heartbeat is written, after this process stood still."""
        ...

    def step_down(self) -> None:
        """Let another node lead within seconds; heartbeats continue."""
        ...

    def may_have_lost(self, seen_at: float) -> bool:
        """Whether the process that works on a record may have ended.

        `seen_at` is when this process first saw the record, by the loop's clock.
        """
        ...

    async def stop(self) -> None:
        """Release the leader lease at once, and record a clean shutdown."""
        ...


class OneNode:
    """The only process on an SQLite file, ensured by the folder's lock. It always leads.

    Several machines need the database of a plugin, such as `gateway_nodes`. No payment depends on
    leadership.
    """

    name = ""
    has_others = False
    has_workers = True
    has_other_sellers = False

    async def register(self, *, now: float) -> None:
        pass

    async def nodes(self) -> list[NodeRecord]:
        return []

    async def start(self, now: Clock) -> None:
        pass

    def leads(self) -> bool:
        return True

    async def resume(self, now: Clock) -> None:
        pass

    def step_down(self) -> None:
        pass

    def may_have_lost(self, seen_at: float) -> bool:  # noqa: ARG002 - as of several nodes
        # No other process works on anything.
        return True

    async def stop(self) -> None:
        pass


class Fitness:
    """Whether this process may go on; once lost, only a restart helps. Not thread-safe."""

    def __init__(self) -> None:
        # A message for the operator; empty while the process is fit.
        self.problem = ""
        self._notify: Callable[[str], None] | None = None

    def mark_unfit(self, problem: str) -> None:
        """Record that this process must end. Only the first reason is kept."""
        if not self.problem:
            self.problem = problem
            if self._notify is not None:
                self._notify(problem)

    def watch(self, notify: Callable[[str], None]) -> None:
        """Call `notify` with the reason, immediately if there already is one."""
        self._notify = notify
        if self.problem:
            notify(self.problem)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class WakeHandlers:
    """Callbacks for messages of other nodes; they must not block."""

    # A task is queued.
    on_queued: Callable[[], None]
    # This task has ended, or changed in another way that its buyer waits for.
    on_ended: Callable[[str], None]
    # A message may have been missed: poll everything once.
    on_gap: Callable[[], None]


class Wakes(Protocol):
    """Notifies other nodes after a commit. The next poll makes up for a lost message."""

    @property
    def is_live(self) -> bool:
        """Whether this node receives messages now."""
        ...

    def start(self, handlers: WakeHandlers) -> None:
        """Receive messages until the store closes."""
        ...

    def post_queued(self) -> None:
        """Announce that a task is queued; call this after the commit."""
        ...

    def post_ended(self, task_id: str) -> None:
        """Announce that a task has ended; call this after the commit."""
        ...
