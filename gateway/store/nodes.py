"""The machines on one database, and the lead among them, as functions of a connection.

The lead is a lease: whoever has it prolongs it, and another takes it once it has ended. Money does
not rest on it. Two nodes that both believe to lead do the same work twice, and the transactions of
docs/payments.md let it count once. All times are the database's, so that clocks may differ.

The column `roles.epoch` grows with each change of the leader. No code reads it: for the same reason
nothing is fenced by it, and who looks into the database sees how often the lead has changed.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Collection, Iterable

import structlog

from gateway.contracts import Clock
from gateway.contracts.nodes import NodeRecord
from gateway.errors import SettingsError
from gateway.store.rows import RunWrite
from gateway.store.sql import Connection, dialect_of
from gateway.version import VERSION

_log = structlog.get_logger()
_LEADER = "leader"
# A leader that dies is followed by another after so long.
_LEASE_S = 15.0
_KEEP_EVERY_S = 4.0
# What a node may do, and what it means that none does.
ROLES = {
    "web": "No machine sells.",
    "worker": "No machine works: nothing is sold, and what was sold waits.",
    "signer": "No machine may lead: refunds, webhooks and open payments wait.",
}
# A node writes its row every few seconds; one that has not for so long has died.
_GONE_S = 20.0
# After a crash the same machine comes again at once. It watches its former row for so long: the row
# of a process that runs is written twice meanwhile.
_WATCH_S = 10.0
_FORGOTTEN_S = 86_400.0
# The database's clock decides leases of tasks, but the times that buyers and vendors see are a
# machine's. A start that is refused for a second would be one too many; `gateway check` warns
# earlier.
MOST_SKEW_S = 5.0
# The role of a node whose clock is off: it works on nothing new.
_OFF = "off"
# The life of a node that stopped in order.
_NO_LIFE = ""


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


class _NameTaken(Exception):
    """Another process has the node's name, or died a moment ago."""

    def __init__(self, seen_at: float) -> None:
        super().__init__(seen_at)
        self.seen_at = seen_at


def arrive(db: Connection, name: str, life: str, now: float, watched: float | None = None) -> None:
    """Write down that a node has started.

    `watched` is when its name's former process was seen last, if that was watched for a while.
    Raises `SettingsError` for a clock that is off, and `_NameTaken`.
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
    # The roles of this name's former process, and of nodes that are gone.
    db.execute(
        "DELETE FROM roles WHERE name IN (?, ?, ?, ?) OR (name <> ? AND until < ?)",
        (*[f"{role}:{name}" for role in (*ROLES, _OFF)], _LEADER, clock - _FORGOTTEN_S),
    )
    _insert(db, name, life, clock)


def describe_skew(ahead_s: float) -> str:
    """Return the sentence for a machine whose clock is off."""
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
    """Another process took the node's name while this one did not say that it ran."""


def keep(
    db: Connection, name: str, life: str, lease_s: float, roles: Collection[str], now: float
) -> tuple[bool, bool, float]:
    """Note that a node runs, and in which roles; take or prolong the lead if it may.

    Returns whether it leads, whether any node works, and how many seconds the node's clock is
    ahead. A node whose clock is off is no worker. Raises `_NameLost`.
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
    """Return the roles that a node has now, and give up the one that it has no longer."""
    ended = "worker" if off else _OFF
    db.execute("DELETE FROM roles WHERE name = ?", (f"{ended}:{name}",))
    return sorted({*roles, _OFF} - {ended})


def _take_role(db: Connection, role: str, life: str, until: float, clock: float) -> bool:
    """Take or prolong a role until a time, unless another process has it now."""
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
    """Return what each node that runs does.

    A node of the release before notes no roles, because it does everything.
    """
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
    """Give the lead up at once, and note that a node has stopped."""
    db.execute("UPDATE roles SET until = 0.0 WHERE name = ? AND holder = ?", (_LEADER, life))
    db.execute("DELETE FROM roles WHERE holder = ? AND name <> ?", (life, _LEADER))
    db.execute(
        "UPDATE nodes SET life = ?, seen_at = ? WHERE name = ? AND life = ?",
        (_NO_LIFE, read_clock(db), name, life),
    )


def find_workers(db: Connection) -> list[str]:
    """Return the names of the nodes that work, in order; one that died is there for a while."""
    roles = _find_roles(db, read_clock(db))
    return sorted(name for name, found in roles.items() if "worker" in found)


def find_nodes(db: Connection) -> list[NodeRecord]:
    """Return the nodes of the last day, by name."""
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
    """Return a sentence for each role that none of the nodes has."""
    held = {role for node in nodes for role in node.roles}
    return [
        f"{missed} Start a machine with GATEWAY_ROLE={role}, or all."
        for role, missed in ROLES.items()
        if role not in held
    ]


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


class SqlNodes:
    """The nodes of a database that several share. Implements `contracts.nodes.NodeRecords`."""

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
        # Why this node works on nothing new, as it was when it was last kept; empty if it does.
        self.clock_problem = ""
        self._life = secrets.token_hex(8)
        self._watch_s = watch_s
        self._lease_s = _LEASE_S
        self._keep_every_s = _KEEP_EVERY_S
        # By the loop's clock.
        self._leads_until = 0.0
        self._keeping: asyncio.Task[None] | None = None

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

    async def nodes(self) -> list[NodeRecord]:
        found: list[NodeRecord] = await self._read(find_nodes)
        return found

    # -- the lead

    async def start(self, now: Clock) -> None:
        await self._keep_once(now)
        self._keeping = asyncio.create_task(self._keep_forever(now), name="leadership")

    def leads(self) -> bool:
        return asyncio.get_running_loop().time() < self._leads_until

    def step_down(self) -> None:
        # The next time it is kept, the lease has ended already.
        self._lease_s = 0.0

    async def stop(self) -> None:
        if self._keeping is None:
            return
        self._keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._keeping
        self._leads_until = 0.0
        try:
            await self.leave()
        except Exception as error:  # noqa: BLE001 - the lease ends without it
            _log.warning("leadership.not_given_up", error=type(error).__name__)

    async def _keep_forever(self, now: Clock) -> None:
        while True:
            await asyncio.sleep(self._keep_every_s)
            try:
                await self._keep_once(now)
            except Exception as error:  # noqa: BLE001 - the lease ends, and is taken again
                _log.warning("leadership.not_kept", error=type(error).__name__)

    async def _keep_once(self, now: Clock) -> None:
        # The lease counts from before the question: an answer may be late.
        asked_at = asyncio.get_running_loop().time()
        had, problem = self.leads(), self.clock_problem
        has = await self.keep(lease_s=self._lease_s, now=now())
        self._leads_until = asked_at + self._lease_s if has else 0.0
        if self.leads() != had:
            _log.info("leadership.changed", leads=not had)
        if bool(self.clock_problem) != bool(problem):
            _log.warning("node.clock", problem=self.clock_problem or "It is right again.")

    async def keep(self, *, lease_s: float, now: float) -> bool:
        """Write down that this node runs, and take or prolong the lead for `lease_s` seconds.

        `now` is the node's own clock. Returns whether it leads.
        """
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
        """Give the lead up, and note that this node has stopped."""
        await self._write(leave, self._name, self._life)


class OneNode:
    """The one process of an SQLite file: the folder's lock says so, and it always leads."""

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
