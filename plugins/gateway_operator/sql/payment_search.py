"""Finds payments by the start of a hash, an address or a task's id, as pages show them."""

import re
from collections.abc import Sequence

import attrs

from gateway.store.sql import Connection, dialect_of

# More than one page shows.
MAX_FOUND = 200

_HASH_CHARS = 66
_ADDRESS_CHARS = 42
# Such as `0x835e`, `0x835e…307d` or a whole hash. Fewer digits would match too many rows.
_HEX = re.compile(r"(0x[0-9a-f]{4,64})(?:(?:…|\.{2,3})([0-9a-f]{1,60}))?")
# The start of a UUID, at most as far as pages show it (see `desk/references.py`): a longer start
# would let a token guess the secret part, digit by digit.
_TASK = re.compile(r"[0-9a-f]{6,8}|[0-9a-f]{8}-[0-9a-f]{0,4}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{0,4}")
_LEAST_ID, _MOST_ID = "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"

# By address, or as a payment method names the payer.
OF_PAYER = """SELECT id FROM payments WHERE payer = lower(?) AND method IS NULL
    UNION ALL SELECT payment_id FROM method_proofs WHERE payer = ?"""

# Each takes a range and a pattern.
_BY_HASH = (
    "SELECT id FROM payments WHERE method IS NULL AND {paid_tx}",
    "SELECT payment_id FROM refunds WHERE {tx_hash}",
    "SELECT payment_id FROM sent_transactions WHERE {tx_hash}",
    "SELECT payment_id FROM sent_payments WHERE {tx_hash}",
)
_BY_ADDRESS = (
    "SELECT id FROM payments WHERE method IS NULL AND {payer}",
    "SELECT payment_id FROM method_proofs WHERE {payer}",
)
_WITHIN = {name: f"{name} BETWEEN ? AND ? AND {name} LIKE ?" for name in ("paid_tx", "tx_hash")}
_WITHIN["payer"] = "payer BETWEEN ? AND ? AND payer LIKE ?"


@attrs.frozen
class _Range:
    """The texts of one length that start and end as typed, in every collation."""

    least: str
    most: str
    pattern: str

    @classmethod
    def of(cls, head: str, tail: str, chars: int) -> "_Range":
        left = chars - len(head)
        return cls(head + "0" * left, head + "f" * left, f"{head}%{tail}")

    @property
    def values(self) -> Sequence[str]:
        return (self.least, self.most, self.pattern)


def search_payments(db: Connection, text: str) -> Sequence[int]:
    """Return the payments that match a searched text, newest first, at most `MAX_FOUND`."""
    text = text.strip()
    selects, values = _by_word(db, text)
    if found := _HEX.fullmatch(text.lower()):
        more, their_values = _by_hex(found[1], found[2] or "")
        selects, values = [*selects, *more], [*values, *their_values]
    elif _TASK.fullmatch(text.lower()):
        head = text.lower()
        selects.append("SELECT payment_id FROM tasks WHERE id BETWEEN ? AND ?")
        values += [head + _LEAST_ID[len(head) :], head + _MOST_ID[len(head) :]]
    sql = f"{' UNION '.join(selects)} ORDER BY 1 DESC LIMIT ?"
    return [row[0] for row in db.execute(sql, (*values, MAX_FOUND))]


def _by_word(db: Connection, text: str) -> tuple[list[str], list[str]]:
    """Return the statements for a whole task id, job, claim, or payer of a payment method."""
    job_id = dialect_of(db).json_text("handle", "id")
    selects = [
        "SELECT payment_id FROM tasks WHERE id = ?",
        f"SELECT payment_id FROM tasks WHERE handle IS NOT NULL AND {job_id} = ?",  # noqa: S608 - constants
        "SELECT payment_id FROM method_proofs WHERE claim = ?",
        "SELECT payment_id FROM method_proofs WHERE payer = ?",
    ]
    return selects, [text.lower(), text, text, text]


def _by_hex(head: str, tail: str) -> tuple[list[str], list[str]]:
    selects: list[str] = []
    values: list[str] = []
    for statements, chars in ((_BY_HASH, _HASH_CHARS), (_BY_ADDRESS, _ADDRESS_CHARS)):
        if len(head) + len(tail) <= chars:
            selects += [one.format_map(_WITHIN) for one in statements]
            values += [*_Range.of(head, tail, chars).values] * len(statements)
    return selects, values
