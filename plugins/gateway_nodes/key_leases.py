"""Which settlement keys each node signs with: a lease for each key, among the roles.

With keys of its own, a node waits for no other node's lock, and counts the transactions of its own
keys only. Leases protect no nonce. The write that chooses a nonce does, by a lock of its key, so a
node that stood still and believes to have its keys does no harm, nor does a node of an earlier
release, which signs with all keys.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, runtime_checkable

import attrs

from gateway.store.sql import Connection, Row, placeholders, read_clock
from gateway_nodes.records import take_role

# A dead node's keys are free after this time, as its roles are.
_LEASE_S = 20.0
# How long a node's report about a key counts. It reports every few seconds.
_BUSY_S = 60.0
_LEASE, _BUSY = "key:", "busy_key:"


@runtime_checkable
class SharesKeys(Protocol):
    """A settler whose keys the nodes divide among themselves. A settler need not be one."""

    addresses: tuple[str, ...]

    @property
    def busy_keys(self) -> Collection[str]:
        """The keys for which payments of this node have had to wait for minutes."""
        ...

    def share_keys(self, own: Collection[str], busy: Collection[str]) -> None:
        """Sign with `own` keys only; with any if there are none, or if those cannot sign now.

        `busy` are the keys for which payments wait on any node.
        """
        ...


@attrs.frozen(kw_only=True)
class KeyShare:
    """A node's keys, and the busy keys of all nodes."""

    own: tuple[str, ...]
    busy: tuple[str, ...]


NO_KEYS = KeyShare(own=(), busy=())


def share(
    db: Connection,
    name: str,
    sellers: Sequence[str],
    keys: Sequence[str],
    busy: Collection[str],
    clock: float,
) -> KeyShare:
    """Renew a node's leases; give up or take keys until it has its share.

    `sellers` are the names of the nodes that sell, sorted. `busy` are this node's busy keys.
    """
    if not keys:
        return NO_KEYS
    _report(db, name, busy, clock)
    rows = {row["name"]: row for row in _read_rows(db, keys)}
    count, until = _count_share(name, sellers, len(keys)), clock + _LEASE_S
    mine = [key for key in keys if (row := rows.get(_LEASE + key)) and row["holder"] == name]
    kept = mine[:count]
    if kept:
        where, names = _where(name, kept)
        db.execute(f"UPDATE roles SET until = ? {where}", (until, *names))  # noqa: S608 - a constant
    if len(mine) > count:
        where, names = _where(name, mine[count:])
        db.execute(f"DELETE FROM roles {where}", names)  # noqa: S608 - a constant
    free = [key for key in keys if key not in mine and _is_over(rows.get(_LEASE + key), clock)]
    taken = [
        key for key in free[: count - len(kept)] if take_role(db, _LEASE + key, name, until, clock)
    ]
    waits = [key for key in keys if not _is_over(rows.get(_BUSY + key), clock)]
    return KeyShare(own=(*kept, *taken), busy=tuple(waits))


def _is_over(row: Row | None, clock: float) -> bool:
    return row is None or bool(row["until"] < clock)


def _where(name: str, keys: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the condition for a node's leases of keys, and its parameters."""
    return f"WHERE holder = ? AND name IN ({placeholders(keys)})", [
        name,
        *(_LEASE + key for key in keys),
    ]


def _count_share(name: str, sellers: Sequence[str], keys: int) -> int:
    """Return the number of keys for a node; they differ by one at most."""
    if name not in sellers:
        return 0
    each, left = divmod(keys, len(sellers))
    return each + (sellers.index(name) < left)


def _read_rows(db: Connection, keys: Sequence[str]) -> Sequence[Row]:
    names = [prefix + key for key in keys for prefix in (_LEASE, _BUSY)]
    return db.execute(
        f"SELECT name, holder, until FROM roles WHERE name IN ({placeholders(names)})",  # noqa: S608 - placeholders
        names,
    ).fetchall()


def _report(db: Connection, name: str, busy: Collection[str], clock: float) -> None:
    for key in sorted(busy):
        db.execute(
            """INSERT INTO roles (name, holder, epoch, until) VALUES (?, ?, 1, ?)
               ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until""",
            (_BUSY + key, name, clock + _BUSY_S),
        )


@attrs.frozen(kw_only=True)
class Leases:
    """The keys of each node by its name, and the busy keys of all."""

    own: Mapping[str, Sequence[str]]
    busy: Sequence[str]


def read_leases(db: Connection) -> Leases:
    """Return the current leases."""
    rows = db.execute(
        "SELECT name, holder FROM roles WHERE until >= ? ORDER BY name", (read_clock(db),)
    ).fetchall()
    own: dict[str, list[str]] = {}
    for row in rows:
        if row["name"].startswith(_LEASE):
            own.setdefault(row["holder"], []).append(row["name"].removeprefix(_LEASE))
    busy = [row["name"].removeprefix(_BUSY) for row in rows if row["name"].startswith(_BUSY)]
    return Leases(own=own, busy=busy)
