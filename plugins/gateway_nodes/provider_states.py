"""Provider states that nodes share: off sale, paused, and the nodes that share the limits.

A state's name is its subject, such as "provider:fal:fal-image" or "endpoint:picture". All times are
the database's, because the nodes' clocks may differ.
"""

from collections.abc import Sequence

import attrs

from gateway.store.sql import Connection, Run, locked, read_clock
from gateway_nodes.records import find_workers

# Limits text that comes from a vendor.
_MAX_REASON_CHARS = 500


@attrs.frozen(kw_only=True)
class OffSale:
    """The vendor refuses the account, or a model: no node may sell it."""

    name: str
    # For the operator.
    reason: str
    # Until the first probe, in seconds.
    off_for_s: float


@attrs.frozen(kw_only=True)
class OnSale:
    """A probe or an operator found that it works again."""

    name: str
    # Of the state that ended. A newer state is kept.
    epoch: int


@attrs.frozen(kw_only=True)
class Paused:
    """The vendor asked for a pause of submits."""

    name: str
    pause_s: float


Report = OffSale | OnSale | Paused


@attrs.frozen(kw_only=True)
class ProviderState:
    """The shared state of one name. Durations are in seconds, by the database's clock."""

    name: str

    # Increases whenever the name goes off sale or back on sale, but not with a pause.
    epoch: int

    # None while it is on sale.
    off_reason: str | None

    # Until the first probe, and until the next submit; negative if that is over.
    off_for_s: float
    pause_s: float


@attrs.frozen(kw_only=True)
class SharedStates:
    """The states of all names, and the worker nodes."""

    states: Sequence[ProviderState]

    # The names of the worker nodes, sorted. Empty on SQLite.
    workers: Sequence[str]

    # This node's own name; empty on SQLite.
    node: str


def write_reports(db: Connection, reports: Sequence[Report]) -> None:
    """Record a node's reports."""
    clock = read_clock(db)
    for report in reports:
        match report:
            case OffSale():
                _take_off(db, report, clock)
            case OnSale():
                _put_back(db, report)
            case Paused():
                _pause(db, report, clock)


def _take_off(db: Connection, report: OffSale, clock: float) -> None:
    db.execute(
        """INSERT INTO provider_state (name, epoch, off_reason, off_until, paused_until)
           VALUES (?, 1, ?, ?, 0.0)
           ON CONFLICT (name) DO UPDATE SET epoch = provider_state.epoch + 1,
               off_reason = excluded.off_reason, off_until = excluded.off_until""",
        (report.name, report.reason[:_MAX_REASON_CHARS], clock + report.off_for_s),
    )


def _put_back(db: Connection, report: OnSale) -> None:
    """Put back on sale unless a node has taken it off again since."""
    db.execute(
        """UPDATE provider_state SET epoch = epoch + 1, off_reason = NULL, off_until = 0.0
           WHERE name = ? AND epoch = ? AND off_reason IS NOT NULL""",
        (report.name, report.epoch),
    )


def _pause(db: Connection, report: Paused, clock: float) -> None:
    """Record a pause unless a longer one is known."""
    db.execute(
        """INSERT INTO provider_state (name, epoch, off_reason, off_until, paused_until)
           VALUES (?, 0, NULL, 0.0, ?)
           ON CONFLICT (name) DO UPDATE SET paused_until = excluded.paused_until
           WHERE provider_state.paused_until < excluded.paused_until""",
        (report.name, clock + report.pause_s),
    )


def read_states(db: Connection) -> list[ProviderState]:
    """Return every provider that was ever off sale or paused."""
    clock = read_clock(db)
    return [
        ProviderState(
            name=row["name"],
            epoch=row["epoch"],
            off_reason=row["off_reason"],
            off_for_s=row["off_until"] - clock,
            pause_s=row["paused_until"] - clock,
        )
        for row in db.execute("SELECT * FROM provider_state ORDER BY name")
    ]


# Many nodes may meet the same refusal at once. The lock avoids repeated serialization conflicts.
@locked("providers")
def exchange(db: Connection, reports: Sequence[Report], node: str) -> SharedStates:
    """Record a node's reports, and return the shared state."""
    if reports:
        write_reports(db, reports)
    workers = find_workers(db) if node else []
    return SharedStates(states=read_states(db), workers=workers, node=node)


class SqlProviderStates:
    """The provider states in a shared database."""

    def __init__(self, read: Run, write: Run, node: str) -> None:
        self._read = read
        self._write = write
        self._node = node

    async def exchange(self, reports: Sequence[Report]) -> SharedStates:
        """Record all of this node's reports or none, and return the shared state."""
        # Without reports it need not wait for a commit.
        run = self._write if reports else self._read
        shared: SharedStates = await run(exchange, reports, self._node)
        return shared
