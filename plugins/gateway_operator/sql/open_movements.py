"""Movements without a record, and the blocks that were searched for them; restarts keep both."""

import json
from collections.abc import Collection, Sequence

import attrs

from gateway.domain import MinedTransfer
from gateway.store.sql import Connection

_KEY = "movements_read"
_COLUMNS = tuple(field.name for field in attrs.fields(MinedTransfer))


@attrs.frozen(kw_only=True)
class Progress:
    """Which blocks were read. Times are Unix seconds."""

    # The gateway's addresses, in lower case and sorted.
    addresses: Sequence[str]
    # The first block after those that are read or in a gap.
    next_block: int
    # First and last block of older ranges to read, the newest last.
    gaps: Sequence[tuple[int, int]] = ()
    # When the newest blocks were read last.
    read_at: float
    # When the database was made, and its first block.
    born_at: float
    born_block: int

    @property
    def oldest_unread(self) -> int:
        """The oldest block that was not read."""
        return min([self.next_block, *(first for first, _ in self.gaps)])


@attrs.frozen(kw_only=True)
class OpenRow:
    """A stored movement: its transfer, and the gateway's address with its role."""

    transfer: MinedTransfer
    address: str
    role: str
    # Its block's time, in Unix seconds; None: not known yet.
    at: float | None


def read(db: Connection) -> tuple[Progress | None, list[OpenRow]]:
    """Return the progress, or None, and the open movements."""
    rows = db.execute(f"SELECT {', '.join(_COLUMNS)}, address, role, at FROM open_movements")  # noqa: S608 - constants
    found = [
        OpenRow(
            transfer=MinedTransfer(**{name: row[name] for name in _COLUMNS}),
            address=row["address"],
            role=row["role"],
            at=row["at"],
        )
        for row in rows
    ]
    return _read_progress(db), found


def read_at(db: Connection) -> float | None:
    """Return when any node read the newest blocks last, or None."""
    progress = _read_progress(db)
    return None if progress is None else progress.read_at


def save(
    db: Connection,
    progress: Progress,
    kept: Sequence[OpenRow],
    gone: Collection[tuple[str, int]],
) -> None:
    """Store the progress, and add and delete movements."""
    for place in gone:
        db.execute("DELETE FROM open_movements WHERE tx_hash = ? AND log_index = ?", place)
    names = (*_COLUMNS, "address", "role", "at")
    for one in kept:
        db.execute(
            f"""INSERT INTO open_movements ({", ".join(names)})
                VALUES ({", ".join("?" * len(names))})
                ON CONFLICT (tx_hash, log_index)
                DO UPDATE SET at = coalesce(excluded.at, open_movements.at)""",  # noqa: S608 - constants
            (*attrs.astuple(one.transfer), one.address, one.role, one.at),
        )
    db.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (_KEY, json.dumps(attrs.asdict(progress))),
    )


def _read_progress(db: Connection) -> Progress | None:
    row = db.execute("SELECT value FROM meta WHERE key = ?", (_KEY,)).fetchone()
    if row is None:
        return None
    values = json.loads(row["value"])
    return Progress(**values | {"gaps": [(first, last) for first, last in values["gaps"]]})
