"""Nodes that share a database: registration, roles and the leader lease.

The leader renews its lease; another node takes over once the lease has expired. No payment depends
on leadership: if two nodes both act as leader, they do work twice, and the transactions of
docs/payments.md count it once. All times are the database's, because the nodes' clocks may differ.

`roles.epoch` counts changes of leader. No code reads it; it helps an operator debug.
"""

import asyncio
import secrets
from collections.abc import Callable, Collection, Iterable

from gateway.contracts.nodes import NodeRecord
from gateway.errors import SettingsError
from gateway.store.rows import RunWrite
from gateway.store.sql import Connection, dialect_of
from gateway.version import VERSION

_LEADER = "leader"
# Node roles, and the effect if no node has that role.
ROLES = {
    "web": "No machine sells.",
    "worker": "No machine works: nothing is sold, and what was sold waits.",
    "signer": "No machine may lead: refunds, webhooks and open payments wait.",
}
# A running node updates its row every few seconds. After this time it counts as dead.
_GONE_S = 20.0
# After a crash the same machine restarts at once. It watches its old row for this long: a live
# process would update the row twice in that time.
_WATCH_S = 10.0
_FORGOTTEN_S = 86_400.0
# Task leases use the database's clock, but buyers and vendors see timestamps of the machine. A skew
# of one second should not prevent a start; `gateway check` warns earlier.
MOST_SKEW_S = 5.0
# The role of a node whose clock is off. It takes no new work.
_OFF = "off"
# The `life` of a node that was shut down cleanly.
_NO_LIFE = ""


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
    return abs(clock - now) > MOST_SKEW_S


class _NameTaken(Exception):
    """Another process uses the node's name, or died moments ago."""

    def __init__(self, seen_at: float) -> None:
        super().__init__(seen_at)
        self.seen_at = seen_at


def arrive(db: Connection, name: str, life: str, now: float, watched: float | None = None) -> None:
    """Register a node at startup.

    `watched`: the last update of the former process with this name, if that was watched for a
    while. Raises `SettingsError` if the clock is off, and `_NameTaken`.
    """
    clock = read_clock(db)
    if is_off(now, clock):
        raise SettingsError(describe_skew(now - clock))
    other = db.execute("SELECT life, seen_at FROM nodes WHERE name = ?", (name,)).fetchone()
    if other is not None and other["life"] not in (life, _NO_LIFE):
        seen_at = other["seen_at"]
        if seen_at != watched and clock - seen_at < _GONE_S:
            raise _NameTaken(seen_at)
    db.execute("DELETE FROM nodes WHERE name = ? OR seen_at < ?", (name, clock - _FORGOTTEN_S))
    # The roles of this node's former process, and of dead nodes.
    db.execute(
        "DELETE FROM roles WHERE name IN (?, ?, ?, ?) OR (name <> ? AND until < ?)",
        (*[f"{role}:{name}" for role in (*ROLES, _OFF)], _LEADER, clock - _FORGOTTEN_S),
    )
    _insert(db, name, life, clock)


def describe_skew(ahead_s: float) -> str:
    """Return the operator's message about a clock that is off."""
    return (
        f"This machine's clock is {abs(ahead_s):.0f} seconds "
        f"{'behind' if ahead_s < 0 else 'ahead of'} the database's. Set it right: until then the "
        "machine works on nothing new."
    )


def _insert(db: Connection, name: str, life: str, clock: float) -> None:
    db.execute(
        "INSERT INTO nodes (name, life, version, started_at, seen_at) VALUES (?, ?, ?, ?, ?)",
        (name, life, VERSION, clock, clock),
    )


class _NameLost(Exception):
    """Another process took the node's name while this one sent no heartbeat."""


def keep(
    db: Connection, name: str, life: str, lease_s: float, roles: Collection[str], now: float
) -> tuple[bool, bool, float]:
    """Heartbeat: record that a node runs, its roles, and take or renew the leader lease.

    Returns (whether it leads, whether any node is a worker, seconds that the node's clock is
    ahead). A node whose clock is off is not a worker. Raises `_NameLost`.
    """
    clock = read_clock(db)
    known = db.execute("SELECT life FROM nodes WHERE name = ?", (name,)).fetchone()
    if known is not None and known["life"] not in (life, _NO_LIFE):
        raise _NameLost
    if known is None:
        _insert(db, name, life, clock)
    else:
        db.execute("UPDATE nodes SET life = ?, seen_at = ? WHERE name = ?", (life, clock, name))
    for role in _note_roles(db, name, roles, off=is_off(now, clock)):
        _take_role(db, f"{role}:{name}", life, clock + _GONE_S, clock)
    leads = "signer" in roles and _take_role(db, _LEADER, life, clock + lease_s, clock)
    has_workers = any("worker" in found for found in _find_roles(db, clock).values())
    return leads, has_workers, now - clock


def _note_roles(db: Connection, name: str, roles: Collection[str], *, off: bool) -> list[str]:
    """Return the current roles, and drop the one that no longer applies."""
    ended = "worker" if off else _OFF
    db.execute("DELETE FROM roles WHERE name = ?", (f"{ended}:{name}",))
    return sorted({*roles, _OFF} - {ended})


def _take_role(db: Connection, role: str, life: str, until: float, clock: float) -> bool:
    """Take or renew a role; False if another process holds it."""
    row = db.execute(
        """INSERT INTO roles (name, holder, epoch, until) VALUES (?, ?, 1, ?)
           ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until,
               epoch = roles.epoch + CASE WHEN roles.holder = excluded.holder THEN 0 ELSE 1 END
           WHERE roles.holder = excluded.holder OR roles.until < ?
           RETURNING epoch""",
        (role, life, until, clock),
    ).fetchone()
    return row is not None


def _find_roles(db: Connection, clock: float) -> dict[str, tuple[str, ...]]:
    """Return roles by node; nodes of the previous release have all of them."""
    held = db.execute("SELECT name FROM roles WHERE until >= ?", (clock,))
    pairs = [row["name"].split(":", 1) for row in held if ":" in row["name"]]
    nodes = db.execute(
        "SELECT name FROM nodes WHERE seen_at >= ? AND life <> ?", (clock - _GONE_S, _NO_LIFE)
    )
    found = {row["name"]: [role for role, of in pairs if of == row["name"]] for row in nodes}
    return {
        name: tuple([role for role in ROLES if role in roles or not roles])
        for name, roles in found.items()
    }


def leave(db: Connection, name: str, life: str) -> None:
    """Release the leader lease immediately, and record a clean shutdown."""
    db.execute("UPDATE roles SET until = 0.0 WHERE name = ? AND holder = ?", (_LEADER, life))
    db.execute("DELETE FROM roles WHERE holder = ? AND name <> ?", (life, _LEADER))
    db.execute(
        "UPDATE nodes SET life = ?, seen_at = ? WHERE name = ? AND life = ?",
        (_NO_LIFE, read_clock(db), name, life),
    )


def find_workers(db: Connection) -> list[str]:
    """Return the names of the worker nodes, sorted. A dead node is still listed for a while."""
    roles = _find_roles(db, read_clock(db))
    return sorted(name for name, found in roles.items() if "worker" in found)


def find_nodes(db: Connection) -> list[NodeRecord]:
    """Return the nodes seen in the last day, by name."""
    clock = read_clock(db)
    lead = db.execute("SELECT holder, until FROM roles WHERE name = ?", (_LEADER,)).fetchone()
    roles = _find_roles(db, clock)
    leader = lead["holder"] if lead is not None and lead["until"] >= clock else None
    rows = db.execute(
        f"SELECT * FROM nodes WHERE seen_at > ? ORDER BY name {dialect_of(db).by_bytes}",  # noqa: S608
        (clock - _FORGOTTEN_S,),
    )
    return [
        NodeRecord(
            name=row["name"],
            version=row["version"],
            started_at=row["started_at"],
            seen_at=row["seen_at"],
            is_leader=row["life"] == leader,
            is_stopped=row["life"] == _NO_LIFE,
            roles=roles.get(row["name"], ()),
        )
        for row in rows
    ]


def tell_missed(nodes: Iterable[NodeRecord]) -> list[str]:
    """Return a message for each role that no node has."""
    held = {role for node in nodes for role in node.roles}
    return [
        f"{missed} Start a machine with GATEWAY_ROLE={role}, or all."
        for role, missed in ROLES.items()
        if role not in held
    ]


class Fitness:
    """Whether this process may go on; once lost, only a restart helps. Not thread-safe."""

    def __init__(self) -> None:
        # A message for the operator; empty while the process is fit.
        self.problem = ""
        self._tell: Callable[[str], None] | None = None

    def lose(self, problem: str) -> None:
        """Record that this process must end. Only the first reason is kept."""
        if not self.problem:
            self.problem = problem
            if self._tell is not None:
                self._tell(problem)

    def watch(self, tell: Callable[[str], None]) -> None:
        """Call `tell` with the reason, immediately if there already is one."""
        self._tell = tell
        if self.problem:
            tell(self.problem)


class SqlNodes:
    """Nodes of a shared database. Implements `contracts.nodes.NodeRecords`."""

    has_others = True

    def __init__(
        self,
        read: RunWrite,
        write: RunWrite,
        name: str,
        fitness: Fitness,
        roles: Collection[str] = tuple(ROLES),
        *,
        watch_s: float = _WATCH_S,
    ) -> None:
        self._read = read
        self._write = write
        self._name = name
        self._fitness = fitness
        self._roles = roles
        self.has_workers = True
        self.clock_problem = ""
        self._life = secrets.token_hex(8)
        self._watch_s = watch_s

    async def arrive(self, *, now: float) -> None:
        try:
            await self._write(arrive, self._name, self._life, now)
        except _NameTaken as taken:
            await asyncio.sleep(self._watch_s)
            await self._take_over(now + self._watch_s, taken.seen_at)

    async def _take_over(self, now: float, watched: float) -> None:
        try:
            await self._write(arrive, self._name, self._life, now, watched)
        except _NameTaken:
            raise SettingsError(
                f"Another gateway runs as node {self._name} on this database. Give each machine a "
                "name of its own: GATEWAY_NODE=b"
            ) from None

    async def keep(self, *, lease_s: float, now: float) -> bool:
        try:
            leads, self.has_workers, ahead_s = await self._write(
                keep, self._name, self._life, lease_s, self._roles, now
            )
        except _NameLost:
            self._fitness.lose(
                f"This process stood still, and another one runs as node {self._name} by now. It "
                "sells nothing more and ends. Give each machine a name of its own (GATEWAY_NODE) "
                "if both are to run."
            )
            return False
        self.clock_problem = describe_skew(ahead_s) if is_off(ahead_s, 0.0) else ""
        return bool(leads)

    async def leave(self) -> None:
        await self._write(leave, self._name, self._life)

    async def nodes(self) -> list[NodeRecord]:
        found: list[NodeRecord] = await self._read(find_nodes)
        return found


class OneNode:
    """The only process on an SQLite file, ensured by the folder's lock. It always leads."""

    has_others = False
    has_workers = True
    clock_problem = ""

    async def arrive(self, *, now: float) -> None:
        pass

    async def keep(self, *, lease_s: float, now: float) -> bool:  # noqa: ARG002 - the protocol's
        return True

    async def leave(self) -> None:
        pass

    async def nodes(self) -> list[NodeRecord]:
        return []
