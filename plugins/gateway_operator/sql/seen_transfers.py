"""Transfers that an operator has marked as seen, or booked as the operator's own."""

from collections.abc import Collection

import attrs

from gateway.errors import ActionRefused
from gateway.store.sql import Connection, placeholders
from gateway_operator.sql.actions import current_id


@attrs.frozen(kw_only=True)
class SeenTransfer:
    """When an operator marked a transfer (Unix seconds), and why."""

    tx_hash: str
    log_index: int
    at: float
    # Whether it books an outgoing transfer; no other mark explains one.
    books_out: bool
    actor: str
    reason: str


def mark(db: Connection, tx_hash: str, log_index: int, now: float) -> None:
    """Mark a transfer as seen; raises `ActionRefused` if it paid for a task or is marked."""
    _mark(db, tx_hash, log_index, now, books_out=False)


def book(db: Connection, tx_hash: str, log_index: int, now: float) -> None:
    """Mark a transfer that left as the operator's own; raises what `mark` does."""
    _mark(db, tx_hash, log_index, now, books_out=True)


def _mark(db: Connection, tx_hash: str, log_index: int, now: float, *, books_out: bool) -> None:
    paid = db.execute(
        """SELECT t.id FROM payments p JOIN tasks t ON t.payment_id = p.id
           WHERE p.paid_tx = ? AND p.paid_log_index = ?""",
        (tx_hash, log_index),
    ).fetchone()
    if paid is not None:
        raise ActionRefused(f"This transfer paid for task {paid['id']}.")
    # An earlier mark that books nothing gives way.
    marked = db.execute(
        """INSERT INTO unclaimed_marks (tx_hash, log_index, at, action_id, books_out)
           VALUES (?, ?, ?, ?, ?)
           ON CONFLICT (tx_hash, log_index) DO UPDATE
               SET at = excluded.at, action_id = excluded.action_id, books_out = 1
               WHERE excluded.books_out > unclaimed_marks.books_out""",
        (tx_hash, log_index, now, current_id(db), int(books_out)),
    ).rowcount
    if not marked:
        raise ActionRefused("This transfer is marked as seen already.")


def find(db: Connection, tx_hashes: Collection[str]) -> dict[tuple[str, int], SeenTransfer]:
    """Return the marks of these transactions' transfers, by hash and log index."""
    hashes = tuple(tx_hashes)
    rows = db.execute(
        f"""SELECT m.tx_hash, m.log_index, m.at, m.books_out, a.actor, a.reason
           FROM unclaimed_marks m JOIN operator_actions a ON a.id = m.action_id
           WHERE m.tx_hash IN ({placeholders(hashes)})""",  # noqa: S608 - placeholders
        hashes,
    )
    names = [field.name for field in attrs.fields(SeenTransfer)]
    found = [
        SeenTransfer(**{name: row[name] for name in names} | {"books_out": bool(row["books_out"])})
        for row in rows
    ]
    return {(one.tx_hash, one.log_index): one for one in found}


def booked_at(db: Connection) -> float:
    """Return when an outgoing transfer was booked last; 0 if none was."""
    found = db.execute("SELECT max(at) FROM unclaimed_marks WHERE books_out = 1").fetchone()[0]
    return float(found or 0)


def reasons(db: Connection, tx_hashes: Collection[str]) -> dict[tuple[str, int], str]:
    """Return the reasons of these marks, by hash and log index."""
    return {key: one.reason for key, one in find(db, tx_hashes).items()}
