"""The tokens of the JSON API."""

from gateway.errors import ActionRefused
from gateway.store.sql import Connection, locked
from gateway_operator.logins import OperatorToken

MAX_VALID = 100
_COLUMNS = "id, name, scope, created_at, expires_at, used_at, revoked_at"
_IS_VALID = "revoked_at IS NULL AND expires_at > ?"


# Guards the names and the number of valid tokens.
@locked("tokens")
def insert(
    db: Connection, token_hash: str, name: str, scope: str, now: float, expires_at: float
) -> OperatorToken:
    """Insert a token; raises `ActionRefused` if the name is in use, or for too many."""
    names = [
        row[0]
        for row in db.execute(f"SELECT name FROM operator_tokens WHERE {_IS_VALID}", (now,))  # noqa: S608 - constants
    ]
    if name in names:
        raise ActionRefused(f"A valid token is named {name} already: revoke it, or choose a name.")
    if len(names) >= MAX_VALID:
        raise ActionRefused(f"{MAX_VALID} tokens are valid already: revoke one first.")
    row = db.execute(
        f"""INSERT INTO operator_tokens (hash, name, scope, created_at, expires_at)
            VALUES (?, ?, ?, ?, ?) RETURNING {_COLUMNS}""",  # noqa: S608 - constants
        (token_hash, name, scope, now, expires_at),
    ).fetchone()
    return OperatorToken(**row)


def find_valid(db: Connection, token_hash: str, now: float) -> OperatorToken | None:
    """Return a token that is neither revoked nor expired, or None."""
    row = db.execute(
        f"SELECT {_COLUMNS} FROM operator_tokens WHERE hash = ? AND {_IS_VALID}",  # noqa: S608 - constants
        (token_hash, now),
    ).fetchone()
    return None if row is None else OperatorToken(**row)


def list_all(db: Connection) -> list[OperatorToken]:
    """Return the newest tokens, including revoked and expired ones, newest first."""
    rows = db.execute(f"SELECT {_COLUMNS} FROM operator_tokens ORDER BY id DESC LIMIT 200")  # noqa: S608 - constants
    return [OperatorToken(**row) for row in rows]


def note_used(db: Connection, token_id: int, now: float) -> None:
    """Record when a token was used."""
    db.execute("UPDATE operator_tokens SET used_at = ? WHERE id = ?", (now, token_id))


def revoke(db: Connection, name: str, now: float) -> None:
    """Revoke the valid token of this name; raises `ActionRefused` if there is none."""
    done = db.execute(
        f"UPDATE operator_tokens SET revoked_at = ? WHERE name = ? AND {_IS_VALID}",  # noqa: S608 - constants
        (now, name, now),
    )
    if done.rowcount == 0:
        raise ActionRefused(f"No valid token is named {name}.")
