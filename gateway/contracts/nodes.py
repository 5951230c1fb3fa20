"""What machines on one database know of each other, and which of them does what only one does."""

from typing import Protocol

import attrs


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

    @property
    def clock_problem(self) -> str:
        """Why this node works on nothing new, as it was when it was last kept; empty if it does."""
        ...

    async def keep(self, *, lease_s: float, now: float) -> bool:
        """Write down that this node still runs, and take or prolong the lead for `lease_s` seconds.

        `now` is the node's own clock. Returns whether it leads.
        """
        ...

    async def leave(self) -> None:
        """Give the lead up, and note that this node has stopped."""
        ...

    async def nodes(self) -> list[NodeRecord]:
        """Return every node that was seen in the last day, by name."""
        ...
