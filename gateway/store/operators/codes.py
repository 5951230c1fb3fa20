"""The secret of the operator's codes, as functions of a connection."""

from gateway.contracts.operator_logins import OperatorCodes
from gateway.errors import ActionRefused
from gateway.store.sql import Connection


def find(db: Connection) -> OperatorCodes | None:
    """Return the secret, confirmed or not; None where there is none."""
    row = db.execute("SELECT secret, confirmed_at, last_step FROM operator_codes").fetchone()
    return None if row is None else OperatorCodes(**row)


def begin(db: Connection, secret: str) -> None:
    """Keep a secret that is not confirmed yet; raises `ActionRefused` where codes are on."""
    _refuse_confirmed(db)
    db.execute("DELETE FROM operator_codes")
    db.execute("INSERT INTO operator_codes (id, secret) VALUES (1, ?)", (secret,))


def confirm(db: Connection, step: int, now: float) -> None:
    """Switch codes on; `step` is the time step of the code that was given."""
    _refuse_confirmed(db)
    db.execute("UPDATE operator_codes SET confirmed_at = ?, last_step = ?", (now, step))


def take(db: Connection, step: int) -> bool:
    """Use a time step's code up; False where it, or a later one, was taken before."""
    done = db.execute(
        """UPDATE operator_codes SET last_step = ?
           WHERE confirmed_at IS NOT NULL AND last_step < ?""",
        (step, step),
    )
    return done.rowcount > 0


def remove(db: Connection) -> None:
    """Delete the secret; raises `ActionRefused` where there is none."""
    if db.execute("DELETE FROM operator_codes").rowcount == 0:
        raise ActionRefused("Codes are off already.")


def _refuse_confirmed(db: Connection) -> None:
    codes = find(db)
    if codes is not None and codes.confirmed_at is not None:
        raise ActionRefused("Codes are on already; switch them off first.")
