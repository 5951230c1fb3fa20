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

    # Whether it does what only one node does.
    is_leader: bool

    # Whether it stopped in order at `seen_at`; it is no longer missed.
    is_stopped: bool = False

    # What it does, of `web`, `worker`, `signer`, in this order; empty once it is gone.
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
        """Whether a machine makes what is sold, as it was when this node was last kept."""
        ...

    async def arrive(self, *, now: float) -> None:
        """Write down that this node runs, at its start; `now` is its own clock.

        Raises `SettingsError` where another process runs under its name, or its clock is off.
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
        """Let another node lead within seconds; this one still shows that it runs."""
        ...

    async def stop(self) -> None:
        """Give the lead up, so that another node takes it at once, and note the stop."""
        ...


@attrs.frozen(kw_only=True)
class Heard:
    """What a node does when it hears of another; each function returns at once."""

    # A task may be worked on.
    on_queued: Callable[[], None]
    # This task has ended, or has changed in another way that its buyer waits for.
    on_ended: Callable[[str], None]
    # Something may have been missed: look at everything once.
    on_gap: Callable[[], None]


class Wakes(Protocol):
    """Tells other nodes what has just been committed. What is lost is found by the next look."""

    @property
    def is_live(self) -> bool:
        """Whether this node hears the others now."""
        ...

    def start(self, heard: Heard) -> None:
        """Hear the others from now on, until the store closes."""
        ...

    def post_queued(self) -> None:
        """Tell the others that a task may be worked on; call this after the commit."""
        ...

    def post_ended(self, task_id: str) -> None:
        """Tell the others that a task has ended; call this after the commit."""
        ...
