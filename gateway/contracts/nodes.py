"""The machines that share a database: their records, who leads, and how they wake each other."""

from collections.abc import Callable
from typing import Protocol

import attrs

from gateway.contracts import Clock


@attrs.frozen(kw_only=True)
class NodeRecord:
    """A machine that runs, or ran, on this database. Times are Unix seconds."""

    name: str
    version: str
    started_at: float
    seen_at: float

    # Whether it does the work that only one node does.
    is_leader: bool

    # Whether it shut down cleanly at `seen_at`, so that its absence is no problem.
    is_stopped: bool = False

    # Those of `web`, `worker`, `signer` that it has, in this order; empty once it is gone.
    roles: tuple[str, ...] = ()


class NodeRecords(Protocol):
    """The nodes of one database. On SQLite there is one, and it always leads."""

    @property
    def name(self) -> str:
        """This machine's name among those on the database; empty if it has it for itself."""
        ...

    @property
    def has_others(self) -> bool:
        """Whether other machines may run on the database."""
        ...

    @property
    def has_workers(self) -> bool:
        """Whether any machine runs workers, as of this node's last heartbeat."""
        ...

    async def arrive(self, *, now: float) -> None:
        """Write down that this node runs, at its start; `now` is its own clock.

        Raises `SettingsError` if another process runs under its name, or if its clock is wrong.
        """
        ...

    async def nodes(self) -> list[NodeRecord]:
        """Return every node that was seen in the last day, by name."""
        ...

    async def start(self, now: Clock) -> None:
        """Take or ask for the lead, and keep it and this node's record until `stop`.

        `now` is the node's own clock.
        """
        ...

    def leads(self) -> bool:
        """Whether this node does now the work that one of several nodes does."""
        ...

    def step_down(self) -> None:
        """Let another node lead within seconds; this one keeps its heartbeat."""
        ...

    async def stop(self) -> None:
        """Give the lead up, so that another node takes it at once, and note the stop."""
        ...


@attrs.frozen(kw_only=True)
class Heard:
    """Callbacks for messages of other nodes; each returns at once."""

    # A task may be worked on.
    on_queued: Callable[[], None]
    # This task has ended, or has changed in another way that its buyer waits for.
    on_ended: Callable[[str], None]
    # A message may have been missed: poll everything once.
    on_gap: Callable[[], None]


class Wakes(Protocol):
    """Notifies other nodes after a commit. The next poll finds what a lost message was about."""

    @property
    def is_live(self) -> bool:
        """Whether this node receives messages now."""
        ...

    def start(self, heard: Heard) -> None:
        """Receive messages until the store closes."""
        ...

    def post_queued(self) -> None:
        """Announce that a task is queued; call this after the commit."""
        ...

    def post_ended(self, task_id: str) -> None:
        """Announce that a task has ended; call this after the commit."""
        ...
