"""The machines on one database, and the lead among them, as functions of a connection.

The lead is a lease: whoever has it prolongs it, and another takes it once it has ended. Money does
not rest on it. Two nodes that both believe to lead do the same work twice, and the transactions of
docs/payments.md let it count once. All times are the database's, so that clocks may differ.

The column `roles.epoch` grows with each change of the leader. No code reads it: for the same reason
nothing is fenced by it, and who looks into the database sees how often the lead has changed.
"""

from collections.abc import Collection, Iterable

from gateway.contracts.nodes import NodeRecord
from gateway.errors import SettingsError
from gateway.store.nodes import is_off, read_clock
from gateway.store.sql import Connection, dialect_of
from gateway.version import VERSION

_LEADER = "leader"
# What a node may do, and what it means that none does.
ROLES = {
    "web": "No machine sells.",
    "worker": "No machine works: nothing is sold, and what was sold waits.",
    "signer": "No machine may lead: refunds, webhooks and open payments wait.",
}
# A node writes its row every few seconds; one that has not for so long has died.
_GONE_S = 20.0
_FORGOTTEN_S = 86_400.0
# The role of a node whose clock is off: it works on nothing new.
_OFF = "off"
# The life of a node that stopped in order.
_NO_LIFE = ""


class NameTaken(Exception):
    """Another process has the node's name, or died a moment ago."""

    def __init__(self, seen_at: float) -> None:
        super().__init__(seen_at)
        self.seen_at = seen_at


def arrive(db: Connection, name: str, life: str, now: float, watched: float | None = None) -> None:
    """Write down that a node has started.

    `watched` is when its name's former process was seen last, if that was watched for a while.
    Raises `SettingsError` for a clock that is off, and `NameTaken`.
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


class NameLost(Exception):
    """Another process took the node's name while this one did not say that it ran."""


def keep(
    db: Connection, name: str, life: str, lease_s: float, roles: Collection[str], now: float
) -> tuple[bool, bool, float]:
    """Note that a node runs, and in which roles; take or prolong the lead if it may.

    Returns whether it leads, whether any node works, and how many seconds the node's clock is
    ahead. A node whose clock is off is no worker. Raises `NameLost`.
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
