"""The nodes of a database as the core knows them: one process, and the clock of its leases.

Several machines share a database of a plugin, such as `gateway_nodes`. Money does not rest on which
of them leads.
"""

from collections.abc import Callable

from gateway.contracts import Clock
from gateway.contracts.nodes import NodeRecord
from gateway.store.sql import Connection, dialect_of

# The database's clock decides leases of tasks, but the times that buyers and vendors see are a
# machine's. A start that is refused for a second would be one too many; `gateway check` warns
# earlier.
MOST_SKEW_S = 5.0


def read_clock(db: Connection) -> float:
    """Return the database's own time (Unix seconds)."""
    return float(db.execute(dialect_of(db).clock_query).fetchone()[0])


def lease_clock(db: Connection, now: float) -> float:
    """Return the time that decides leases: the database's if machines share it, else the caller's.

    One process has an SQLite file to itself, and both read the clock of the same machine.
    """
    return read_clock(db) if dialect_of(db).is_shared else now


def is_off(now: float, clock: float) -> bool:
    """Whether a machine's clock is too far from the database's to work on something new."""
    return abs(clock - now) > MOST_SKEW_S


class Fitness:
    """Becomes false once, for a reason that only a new start mends. Used on the loop's thread."""

    def __init__(self) -> None:
        # One sentence for the operator; empty while all is well.
        self.problem = ""
        self._tell: Callable[[str], None] | None = None

    def lose(self, problem: str) -> None:
        """Note that this process must end; only the first reason counts."""
        if not self.problem:
            self.problem = problem
            if self._tell is not None:
                self._tell(problem)

    def watch(self, tell: Callable[[str], None]) -> None:
        """Call `tell` with the reason, at once where there is one already."""
        self._tell = tell
        if self.problem:
            tell(self.problem)


class OneNode:
    """The one process of an SQLite file: the folder's lock says so, and it always leads."""

    name = ""
    has_others = False
    has_workers = True

    async def arrive(self, *, now: float) -> None:
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
