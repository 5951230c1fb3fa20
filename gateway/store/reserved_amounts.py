"""Amounts that only one buyer pays, so that nobody else can buy with the transfer.

A transaction hash is public. Without its sender's signature, the first client to submit it gets the
task. A person who pays by a QR code cannot sign for the page, so the page asks for an amount of its
own, a little above the price. A transfer of that amount then needs the Idempotency-Key that
reserved it.
"""

import hashlib
from collections.abc import Sequence

import attrs

from gateway.store.sql import Connection, Cursor, Row, placeholders

# Of all buyers together; 100 bytes each.
_MOST = 50_000


@attrs.frozen(kw_only=True)
class ReservedAmount:
    """An amount in units of 10⁻⁶ USDC, and its times in Unix seconds."""

    units: int
    # The transfer is in this block or a later one.
    from_block: int
    # When the buyer should have paid.
    pay_by: float
    # Until then no other purchase can use the amount: a transfer made in time is too old by then.
    ends_at: float


def holder_of(idempotency_key: str) -> str:
    """Return the hash that stands for the holder of an amount."""
    # 0xFD never occurs in UTF-8; other hashes of a key have 0xFE or 0xFF.
    return hashlib.sha256(b"\xfd" + idempotency_key.encode()).hexdigest()


def find_amounts(db: Connection, holder: str, now: float) -> list[ReservedAmount]:
    """Return the amounts that a holder has reserved, newest first."""
    rows = db.execute(
        """SELECT units, from_block, pay_by, ends_at FROM reserved_amounts
           WHERE key_hash = ? AND ends_at > ? ORDER BY pay_by DESC, units LIMIT 20""",
        (holder, now),
    )
    return [_amount_of(row) for row in rows.fetchall()]


def find_first_block(db: Connection, ends_after: float) -> int | None:
    """Return the lowest block from which an amount that ends later is awaited, or None."""
    found: int | None = db.execute(
        "SELECT min(from_block) FROM reserved_amounts WHERE ends_at > ?", (ends_after,)
    ).fetchone()[0]
    return found


def reserve_amount(
    db: Connection, holder: str, amounts: Sequence[ReservedAmount], now: float
) -> ReservedAmount | None:
    """Reserve the first free amount of some, and return it; None if all are taken.

    An amount that the holder has already is free: a repeat after a COMMIT whose response was lost.
    """
    db.execute("DELETE FROM reserved_amounts WHERE ends_at <= ?", (now,))
    if db.execute("SELECT count(*) FROM reserved_amounts").fetchone()[0] >= _MOST:
        return None
    for one in amounts:
        row = db.execute(
            """INSERT INTO reserved_amounts (units, key_hash, from_block, pay_by, ends_at)
               VALUES (?, ?, ?, ?, ?) ON CONFLICT (units)
               DO UPDATE SET pay_by = excluded.pay_by, ends_at = excluded.ends_at
               WHERE reserved_amounts.key_hash = excluded.key_hash
               RETURNING units, from_block, pay_by, ends_at""",
            (one.units, holder, one.from_block, one.pay_by, one.ends_at),
        ).fetchone()
        if row:
            return _amount_of(row)
    return None


def find_holders(db: Connection, amounts: Sequence[int], now: float) -> Cursor:
    """Find those of some amounts that are reserved, each with its holder."""
    return db.execute(
        f"""SELECT units, key_hash FROM reserved_amounts
            WHERE units IN ({placeholders(amounts)}) AND ends_at > ?""",  # noqa: S608
        (*amounts, now),
    )


def is_holder(holder: str | None, idempotency_key: str | None) -> bool:
    """Whether an amount's holder has this Idempotency-Key."""
    return idempotency_key is not None and holder == holder_of(idempotency_key)


def _amount_of(row: Row) -> ReservedAmount:
    return ReservedAmount(units=row[0], from_block=row[1], pay_by=row[2], ends_at=row[3])
