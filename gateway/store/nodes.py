"""The node of an SQLite database, and the clock of leases.

Several machines need the database of a plugin, such as `gateway_nodes`. No payment depends on
leadership.
"""

from collections.abc import Callable

from gateway.contracts import Clock
from gateway.contracts.nodes import NodeRecord
from gateway.store.sql import Connection, dialect_of

# Task leases use the database's clock, but buyers and vendors see timestamps of the machine. A skew
# of one second should not prevent a start; `gateway check` warns earlier.
MAX_SKEW_S = 5.0


def read_clock(db: Connection) -> float:
    """Return the database's time (Unix seconds)."""
    return float(db.execute(dialect_of(db).clock_query).fetchone()[0])


def lease_clock(db: Connection, now: float) -> float:
    """Return the clock that decides leases: the database's if nodes share it, else the caller's.

    With SQLite, both are the clock of the same machine.
    """
    return read_clock(db) if dialect_of(db).is_shared else now


def is_off(now: float, clock: float) -> bool:
    """Whether a machine's clock differs too much from the database's to take new work."""
    return abs(clock - now) > MAX_SKEW_S


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


class OneNode:
    """The only process on an SQLite file, ensured by the folder's lock. It always leads."""

    name = ""
    has_others = False
    has_workers = True

    async def register(self, *, now: float) -> None:
        pass

    async def nodes(self) -> list[NodeRecord]:
        return []

    async def start(self, now: Clock) -> None:
        pass

    def leads(self) -> bool:
        return True

    def step_down(self) -> None:
        pass

    async def stop(self) -> None:
        pass
