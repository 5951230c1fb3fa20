"""Notes in an SQLite file whose sales were moved to another database: no gateway runs on it.

Two databases that both believe a transfer unspent would let it pay twice. `gateway migrate-store`
writes the notes.
"""

import sqlite3

import attrs

from gateway.errors import SettingsError


@attrs.frozen(kw_only=True)
class Move:
    """A move that was begun, and how far it got."""

    # What this move wrote into the other database says the same.
    id: str

    # The other database's address, without login.
    target: str

    # Whether the other database is known to have everything.
    is_done: bool


def move_of(db: sqlite3.Connection) -> Move | None:
    """Return the move that a file is in; None for one that stays."""
    try:
        notes = dict(
            db.execute(
                "SELECT key, value FROM meta WHERE key IN ('moving_to', 'moved_to', 'move_id')"
            ).fetchall()
        )
    except sqlite3.OperationalError:
        # A new file has no tables, and another program's has others.
        return None
    target = notes.get("moved_to") or notes.get("moving_to")
    if target is None:
        return None
    return Move(id=notes["move_id"], target=target, is_done="moved_to" in notes)


def check_stays(db: sqlite3.Connection) -> None:
    """Raise `SettingsError` for a file whose payments are in another database, or may be."""
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
