"""The operator's sessions."""

from gateway.store.sql import Connection, dialect_of
from gateway_operator.logins import OperatorSession

# Seconds that ended sessions are kept.
_RETENTION_S = 30 * 86_400
# A login beyond this limit ends the least recently used session.
MAX_OPEN = 100
_COLUMNS = "id, created_at, seen_at, fresh_until, address, device"


def insert(db: Connection, session: OperatorSession, password: str) -> None:
    """Insert a session, and delete those that ended long ago.

    `password` is the fingerprint of the password's hash.
    """
    now = session.created_at
    db.execute(
        "DELETE FROM operator_sessions WHERE coalesce(ended_at, seen_at) <= ?",
        (now - _RETENTION_S,),
    )
    db.execute(
        f"""INSERT INTO operator_sessions ({_COLUMNS}, password)
            VALUES (?, ?, ?, ?, ?, ?, ?)""",  # noqa: S608 - constants
        (
            *(session.id, session.created_at, session.seen_at, session.fresh_until),
            *(session.address, session.device, password),
        ),
    )
    db.execute(
        """UPDATE operator_sessions SET ended_at = ? WHERE ended_at IS NULL AND id NOT IN (
               SELECT id FROM operator_sessions WHERE ended_at IS NULL
               ORDER BY seen_at DESC, id LIMIT ?)""",
        (now, MAX_OPEN),
    )


def find_open(
    db: Connection, session_id: str, password: str, seen_after: float, made_after: float
) -> OperatorSession | None:
    """Return a session that is open, recent enough, and made with the current password."""
    row = db.execute(
        f"""SELECT {_COLUMNS} FROM operator_sessions WHERE id = ? AND password = ?
            AND ended_at IS NULL AND seen_at > ? AND created_at > ?""",  # noqa: S608 - constants
        (session_id, password, seen_after, made_after),
    ).fetchone()
    return None if row is None else OperatorSession(**row)


def list_open(
    db: Connection, password: str, seen_after: float, made_after: float
) -> list[OperatorSession]:
    """Return all such sessions, the most recently used first."""
    rows = db.execute(
        f"""SELECT {_COLUMNS} FROM operator_sessions WHERE password = ? AND ended_at IS NULL
            AND seen_at > ? AND created_at > ?
            ORDER BY seen_at DESC, id {dialect_of(db).by_bytes}""",  # noqa: S608 - constants
        (password, seen_after, made_after),
    )
    return [OperatorSession(**row) for row in rows]


def note_seen(db: Connection, session_id: str, now: float) -> None:
    """Record that a session is in use."""
    db.execute("UPDATE operator_sessions SET seen_at = ? WHERE id = ?", (now, session_id))


def set_fresh(db: Connection, session_id: str, until: float) -> None:
    """Record until when a session counts as fresh."""
    db.execute("UPDATE operator_sessions SET fresh_until = ? WHERE id = ?", (until, session_id))


def end(db: Connection, session_id: str, now: float) -> None:
    """End a session; one that has ended stays unchanged."""
    db.execute(
        "UPDATE operator_sessions SET ended_at = ? WHERE id = ? AND ended_at IS NULL",
        (now, session_id),
    )
