"""Long texts of results, in rows of their own, so that polling does not read them.

They are stored as encoded JSON, and streamed to clients in parts (`running/long_texts.py`).
"""

from collections.abc import Iterator, Sequence

import attrs
import msgspec

from gateway.contracts import Lease
from gateway.domain import LongText, StoredResult
from gateway.store.sql import Connection

# Texts up to this length stay in the task's row, which a poll reads in about 50 µs.
SHORT_CHARS = 32_768
# Each part costs a hop to the database's thread. JSON encodes a control character in six bytes, so
# a part takes up to 393,216 bytes.
PART_CHARS = 65_536


def shorten(result: StoredResult) -> tuple[StoredResult, list[bytes]]:
    """Return a result as stored in the task's row, and the parts of its long text, if any."""
    text = result.text
    if text is None or len(text) <= SHORT_CHARS:
        return result, []
    parts = list(_split(text))
    described = LongText(parts=len(parts), json_bytes=sum(map(len, parts)), chars=len(text))
    return attrs.evolve(result, text=None, long_text=described), parts


def add_parts(db: Connection, lease: Lease, parts: Sequence[bytes]) -> None:
    """Insert the parts of a long text, if the task's lease still holds."""
    for number, part in enumerate(parts):
        db.execute(
            """INSERT INTO task_texts (task_id, part, data)
               SELECT id, ?, ? FROM tasks WHERE id = ? AND lease_token = ?""",
            (number, part, lease.task_id, lease.token),
        )


def read_part(db: Connection, task_id: str, number: int) -> bytes | None:
    """Return part `number` (from 0) of a task's long text, or None.

    The part is the inside of a JSON string, in UTF-8, at most 400 KB.
    """
    row = db.execute(
        "SELECT data FROM task_texts WHERE task_id = ? AND part = ?", (task_id, number)
    ).fetchone()
    return None if row is None else bytes(row[0])


def _split(text: str) -> Iterator[bytes]:
    for begin in range(0, len(text), PART_CHARS):
        yield msgspec.json.encode(text[begin : begin + PART_CHARS])[1:-1]
