"""Markers that the sales of an SQLite file were moved to another database.

No gateway may use the file then: if two databases both considered a transfer unspent, it could pay
twice. `gateway migrate-store` writes the markers.
"""

import sqlite3

import attrs

from gateway.errors import SettingsError


@attrs.frozen(kw_only=True)
class Move:
    """A started move, and whether it is complete."""

    # The same id is in the other database.
    id: str
    # The other database's URL without credentials.
    target: str
    # Whether the other database is known to be complete.
    is_done: bool


def move_of(db: sqlite3.Connection) -> Move | None:
    """Return the move of a file, or None."""
    try:
        notes = dict(
            db.execute(
                "SELECT key, value FROM meta WHERE key IN ('moving_to', 'moved_to', 'move_id')"
            ).fetchall()
        )
    except sqlite3.OperationalError:
        # The file is new, or belongs to another program.
        return None
    target = notes.get("moved_to") or notes.get("moving_to")
    if target is None:
        return None
    return Move(id=notes["move_id"], target=target, is_done="moved_to" in notes)


def check_stays(db: sqlite3.Connection) -> None:
    """Raise `SettingsError` if a file's payments are, or may be, in another database."""
    move = move_of(db)
    if move is None:
        return
    if move.is_done:
        raise SettingsError(
            f"This database was moved to {move.target}, and a transfer must not pay in both. Set "
            "GATEWAY_DATABASE_URL to that database."
        )
    raise SettingsError(
        f"A move of this database to {move.target} has begun and not ended. Run "
        "`gateway migrate-store` again, which ends it, or with --take-back."
    )
