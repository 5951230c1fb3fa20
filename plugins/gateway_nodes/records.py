"""Nodes that share a database: registration, roles and the leader lease.

The leader renews its lease; another node takes over once the lease has expired. No payment depends
on leadership: if two nodes both act as leader, they do work twice, and the transactions of
docs/payments.md count it once. All times are the database's, because the nodes' clocks may differ.

`roles.epoch` counts changes of leader. No code reads it; it helps an operator debug.
"""

from collections.abc import Collection, Iterable, Sequence

import attrs

from gateway.contracts.nodes import NodeRecord
from gateway.errors import SettingsError
from gateway.store.sql import Connection, Row, dialect_of, is_off, read_clock
from gateway.version import VERSION

_LEADER = "leader"
# Before a node's name: the settlement keys that it can sign with.
KEY_LIST = "key_list:"
# Node roles, and the effect if no node has that role.
ROLES = {
    "web": "No machine sells.",
    "worker": "No machine works: nothing is sold, and what was sold waits.",
    "signer": "No machine may lead: refunds, webhooks and open payments wait.",
}
# A running node updates its row every few seconds. After this time it counts as dead.
_GONE_S = 20.0
# After two missed heartbeats a node may be dead, so that another one does its urgent work, too.
_SILENT_S = 10.0
_FORGOTTEN_S = 86_400.0
# The role of a node whose clock is off. It takes no new work.
_OFF = "off"
# The `life` of a node that was shut down cleanly.
_NO_LIFE = ""


class NameTaken(Exception):
    """Another process uses the node's name, or died moments ago."""

    def __init__(self, seen_at: float) -> None:
        super().__init__(seen_at)
        self.seen_at = seen_at


def register(
    db: Connection, name: str, life: str, now: float, watched: float | None = None
) -> None:
    """Register a node at startup.

    `watched`: the last update of the former process with this name, if that was watched for a
    while. Raises `SettingsError` if the clock is off, and `NameTaken`.
    """
    clock = read_clock(db)
    if is_off(now, clock):
        raise SettingsError(describe_skew(now - clock))
    other = db.execute("SELECT life, seen_at FROM nodes WHERE name = ?", (name,)).fetchone()
    if other is not None and other["life"] not in (life, _NO_LIFE):
        seen_at = other["seen_at"]
        if seen_at != watched and clock - seen_at < _GONE_S:
            raise NameTaken(seen_at)
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


class NameLost(Exception):
    """Another process took the node's name while this one sent no heartbeat."""


@attrs.frozen(kw_only=True)
class Heartbeat:
    """What a node learns by its heartbeat."""

    leads: bool
    # Whether any node is a worker.
    has_workers: bool
    # Seconds that the node's clock is ahead.
    ahead_s: float
    # The processes that run, this one included.
    lives: frozenset[str]
    # The names of the nodes that sell, sorted.
    sellers: Sequence[str]
    # The database's.
    clock: float


def renew(
    db: Connection, name: str, life: str, lease_s: float, roles: Collection[str], now: float
) -> Heartbeat:
    """Heartbeat: record that a node runs, its roles, and take or renew the leader lease.

    A node whose clock is off is not a worker. Raises `NameLost`.
    """
    clock = read_clock(db)
    known = db.execute("SELECT life FROM nodes WHERE name = ?", (name,)).fetchone()
    if known is not None and known["life"] not in (life, _NO_LIFE):
        raise NameLost
    if known is None:
        _insert(db, name, life, clock)
    else:
        db.execute("UPDATE nodes SET life = ?, seen_at = ? WHERE name = ?", (life, clock, name))
    for role in _note_roles(db, name, roles, off=is_off(now, clock)):
        take_role(db, f"{role}:{name}", life, clock + _GONE_S, clock)
    leads = "signer" in roles and take_role(db, _LEADER, life, clock + lease_s, clock)
    running = _find_running(db, clock)
    found = _find_roles(db, clock, running)
    return Heartbeat(
        leads=leads,
        has_workers=any("worker" in roles_of for roles_of in found.values()),
        ahead_s=now - clock,
        lives=frozenset(row["life"] for row in running if row["seen_at"] >= clock - _SILENT_S),
        sellers=sorted(node for node, roles_of in found.items() if "web" in roles_of),
        clock=clock,
    )


def _note_roles(db: Connection, name: str, roles: Collection[str], *, off: bool) -> list[str]:
    """Return the node's current roles, and drop the one that it no longer has."""
    ended = "worker" if off else _OFF
    db.execute("DELETE FROM roles WHERE name = ?", (f"{ended}:{name}",))
    return sorted({*roles, _OFF} - {ended})


def take_role(db: Connection, role: str, holder: str, until: float, clock: float) -> bool:
    """Take or renew a role until a time. False if another process holds it."""
    row = db.execute(
        """INSERT INTO roles (name, holder, epoch, until) VALUES (?, ?, 1, ?)
           ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until,
               epoch = roles.epoch + CASE WHEN roles.holder = excluded.holder THEN 0 ELSE 1 END
           WHERE roles.holder = excluded.holder OR roles.until < ?
           RETURNING epoch""",
        (role, holder, until, clock),
    ).fetchone()
    return row is not None


def _find_running(db: Connection, clock: float) -> list[Row]:
    return db.execute(
        "SELECT name, life, seen_at FROM nodes WHERE seen_at >= ? AND life <> ?",
        (clock - _GONE_S, _NO_LIFE),
    ).fetchall()


def _find_roles(db: Connection, clock: float, running: Sequence[Row]) -> dict[str, tuple[str, ...]]:
    """Return the roles of each running node.

    Nodes of the previous release record no roles, and have all of them.
    """
    held = db.execute("SELECT name FROM roles WHERE until >= ?", (clock,))
    pairs = [row["name"].split(":", 1) for row in held if ":" in row["name"]]
    found = {row["name"]: [role for role, of in pairs if of == row["name"]] for row in running}
    return {
        name: tuple([role for role in ROLES if role in roles or not roles])
        for name, roles in found.items()
    }


def unregister(db: Connection, name: str, life: str) -> None:
    """Release the leases immediately, and record a clean shutdown."""
    db.execute("UPDATE roles SET until = 0.0 WHERE name = ? AND holder = ?", (_LEADER, life))
    db.execute("DELETE FROM roles WHERE holder = ? AND name <> ?", (life, _LEADER))
    is_ours = db.execute(
        "UPDATE nodes SET life = ?, seen_at = ? WHERE name = ? AND life = ?",
        (_NO_LIFE, read_clock(db), name, life),
    ).rowcount
    if is_ours:
        # Settlement keys are leased by the node's name.
        db.execute("DELETE FROM roles WHERE holder = ? OR name = ?", (name, KEY_LIST + name))


def find_workers(db: Connection) -> list[str]:
    """Return the names of the worker nodes, sorted. A dead node is still listed for a while."""
    clock = read_clock(db)
    roles = _find_roles(db, clock, _find_running(db, clock))
    return sorted(name for name, found in roles.items() if "worker" in found)


def find_nodes(db: Connection) -> list[NodeRecord]:
    """Return the nodes seen in the last day, by name."""
    clock = read_clock(db)
    lead = db.execute("SELECT holder, until FROM roles WHERE name = ?", (_LEADER,)).fetchone()
    roles = _find_roles(db, clock, _find_running(db, clock))
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


def report_missing_roles(nodes: Iterable[NodeRecord]) -> list[str]:
    """Return a message for each role that no node has."""
    held = {role for node in nodes for role in node.roles}
    return [
        f"{missed} Start a machine with GATEWAY_ROLE={role}, or all."
        for role, missed in ROLES.items()
        if role not in held
    ]
