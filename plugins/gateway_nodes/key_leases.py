"""Which settlement keys each node signs with: a lease for each key, among the roles.

With keys of its own, a node waits for no other node's lock, and counts the transactions of its own
keys only. Leases protect no nonce. The write that chooses a nonce does, by a lock of its key, so a
node that stood still and believes to have its keys does no harm, nor does a node of an earlier
release, which signs with all keys.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, runtime_checkable

import attrs

from gateway.store.sql import Connection, placeholders, read_clock
from gateway_nodes.records import KEY_LIST, take_role

# A dead node's keys are free after this time, as its roles are.
_LEASE_S = 20.0
# How long a node's report about a key counts. It reports every few seconds.
_BUSY_S = 60.0
# Rows of the table of roles: the lease of a key, and a busy key.
_LEASE, _BUSY = "key:", "busy_key:"


@runtime_checkable
class SharesKeys(Protocol):
    """A settler whose keys the nodes divide among themselves. A settler need not be one."""

    addresses: tuple[str, ...]

    @property
    def busy_keys(self) -> Collection[str]:
        """The keys for which payments of this node have had to wait for minutes."""
        ...

    def share_keys(
        self, own: Collection[str], common: Collection[str], busy: Collection[str]
    ) -> None:
        """Sign with `own` keys; with any `common` key if there are none, or if those are busy.

        `common` are the keys that every node has. Without any, each key may sign. `busy` are the
        keys for which payments wait on any node.
        """
        ...


@attrs.frozen(kw_only=True)
class KeyShare:
    """A node's keys, the keys that all nodes have, and the busy keys of all nodes."""

    own: tuple[str, ...]
    common: tuple[str, ...]
    busy: tuple[str, ...]


NO_KEYS = KeyShare(own=(), common=(), busy=())


def share(
    db: Connection,
    name: str,
    sellers: Sequence[str],
    keys: Sequence[str],
    busy: Collection[str],
    clock: float,
    *,
    is_draining: bool = False,
) -> KeyShare:
    """Renew a node's leases; give up or take keys until it has its share.

    `sellers` are the names of the nodes that sell, sorted. `busy` are this node's busy keys. A
    draining node has no share.
    """
    if not keys:
        return NO_KEYS
    _report(db, name, busy, clock)
    _list_keys(db, name, () if is_draining else keys, clock)
    held = _read_rows(db, clock)
    lists = _read_lists(held)
    common = [key for key in keys if all(key in listed for listed in lists.values())]
    count = _count_share(name, [one for one in sellers if one in lists], len(common))
    mine = [key for key in keys if held.get(_LEASE + key) == name]
    kept = [key for key in mine if key in common][:count]
    _renew(db, name, kept, clock)
    _give_up(db, name, [key for key in mine if key not in kept])
    free = [key for key in common if _LEASE + key not in held][: count - len(kept)]
    until = clock + _LEASE_S
    # In one order on every node, so that two of them never wait for each other.
    taken = [key for key in sorted(free) if take_role(db, _LEASE + key, name, until, clock)]
    waits = [key for key in keys if _BUSY + key in held]
    return KeyShare(own=(*kept, *taken), common=tuple(common), busy=tuple(waits))


def _list_keys(db: Connection, name: str, keys: Sequence[str], clock: float) -> None:
    """Record which keys a node can sign with; none withdraw the record."""
    if keys:
        _put(db, KEY_LIST + name, " ".join(keys), clock + _LEASE_S)
    else:
        db.execute("DELETE FROM roles WHERE name = ?", (KEY_LIST + name,))


def _read_lists(held: Mapping[str, str]) -> dict[str, Sequence[str]]:
    """Return each running node's keys by its name. Nodes of an earlier release record none."""
    return {
        name.removeprefix(KEY_LIST): holder.split()
        for name, holder in held.items()
        if name.startswith(KEY_LIST)
    }


def _renew(db: Connection, name: str, keys: Sequence[str], clock: float) -> None:
    if keys:
        where, names = _where(name, keys)
        db.execute(f"UPDATE roles SET until = ? {where}", (clock + _LEASE_S, *names))  # noqa: S608 - a constant


def _give_up(db: Connection, name: str, keys: Sequence[str]) -> None:
    if keys:
        where, names = _where(name, keys)
        db.execute(f"DELETE FROM roles {where}", names)  # noqa: S608 - a constant


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


def _read_rows(db: Connection, clock: float) -> dict[str, str]:
    """Return the holder of each row that is valid now, by the row's name."""
    rows = db.execute("SELECT name, holder FROM roles WHERE until >= ? ORDER BY name", (clock,))
    return {row["name"]: row["holder"] for row in rows.fetchall()}


def _report(db: Connection, name: str, busy: Collection[str], clock: float) -> None:
    for key in sorted(busy):
        _put(db, _BUSY + key, name, clock + _BUSY_S)


def _put(db: Connection, row: str, holder: str, until: float) -> None:
    db.execute(
        """INSERT INTO roles (name, holder, epoch, until) VALUES (?, ?, 1, ?)
           ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until""",
        (row, holder, until),
    )


@attrs.frozen(kw_only=True)
class Leases:
    """The keys of each node by its name, the busy keys of all, and keys that some nodes lack."""

    own: Mapping[str, Sequence[str]]
    busy: Sequence[str]
    # Each with the nodes that do not have it.
    unknown: Mapping[str, Sequence[str]]


def read_leases(db: Connection) -> Leases:
    """Return the current leases."""
    held = _read_rows(db, read_clock(db))
    own: dict[str, list[str]] = {}
    for name, holder in held.items():
        if name.startswith(_LEASE):
            own.setdefault(holder, []).append(name.removeprefix(_LEASE))
    busy = [name.removeprefix(_BUSY) for name in held if name.startswith(_BUSY)]
    lists = _read_lists(held)
    without = {
        key: [node for node, listed in lists.items() if key not in listed]
        for key in sorted({key for listed in lists.values() for key in listed})
    }
    unknown = {key: nodes for key, nodes in without.items() if nodes}
    return Leases(own=own, busy=busy, unknown=unknown)
