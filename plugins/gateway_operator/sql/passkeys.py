"""The operator's passkeys."""

from gateway.errors import ActionRefused
from gateway.store.sql import Connection, dialect_of, locked
from gateway_operator.logins import OperatorPasskey

MAX_PASSKEYS = 20
_COLUMNS = "id, name, public_key, sign_count, created_at, used_at"


# Guards the number of passkeys.
@locked("passkeys")
def insert(db: Connection, passkey: OperatorPasskey) -> None:
    """Insert a passkey; raises `ActionRefused` if it exists, or for too many."""
    known = {row[0] for row in db.execute("SELECT id FROM operator_passkeys")}
    if passkey.id in known:
        raise ActionRefused("This passkey is known already.")
    if len(known) >= MAX_PASSKEYS:
        raise ActionRefused(f"There are {MAX_PASSKEYS} passkeys already: remove one first.")
    db.execute(
        f"INSERT INTO operator_passkeys ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",  # noqa: S608 - constants
        (
            *(passkey.id, passkey.name, passkey.public_key, passkey.sign_count),
            *(passkey.created_at, passkey.used_at),
        ),
    )


def find(db: Connection, passkey_id: str) -> OperatorPasskey | None:
    """Return a passkey by its id, or None."""
    row = db.execute(
        f"SELECT {_COLUMNS} FROM operator_passkeys WHERE id = ?",  # noqa: S608 - constants
        (passkey_id,),
    ).fetchone()
    return None if row is None else OperatorPasskey(**row)


def list_all(db: Connection) -> list[OperatorPasskey]:
    """Return all passkeys, the oldest first."""
    rows = db.execute(
        f"""SELECT {_COLUMNS} FROM operator_passkeys
            ORDER BY created_at, id {dialect_of(db).by_bytes}"""  # noqa: S608 - constants
    )
    return [OperatorPasskey(**row) for row in rows]


def take(db: Connection, passkey_id: str, sign_count: int, asked_at: float, now: float) -> bool:
    """Record that a passkey signed a challenge of the time `asked_at`.

    Returns False if it has signed a later one: a signature counts once.
    """
    done = db.execute(
        """UPDATE operator_passkeys SET sign_count = ?, used_at = ?
           WHERE id = ? AND (used_at IS NULL OR used_at < ?)""",
        (sign_count, now, passkey_id, asked_at),
    )
    return done.rowcount > 0


def remove(db: Connection, passkey_id: str) -> None:
    """Delete a passkey; raises `ActionRefused` if it does not exist."""
    if db.execute("DELETE FROM operator_passkeys WHERE id = ?", (passkey_id,)).rowcount == 0:
        raise ActionRefused("This passkey no longer exists.")
