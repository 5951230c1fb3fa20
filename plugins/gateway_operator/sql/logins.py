"""Refused logins, counted by address and hour.

Anyone can cause them, and rows of the audit log are permanent. So this table has one row per
address and hour for a week, and the audit log gets at most one row an hour.
"""

import attrs

from gateway.store.sql import Connection, dialect_of, locked
from gateway_operator.audit_log import NewAction
from gateway_operator.sql import actions

_HOUR_S = 3600
_RETENTION_S = 7 * 86_400
_MAX_ROWS = 10_000


@attrs.frozen(kw_only=True)
class RefusedLogins:
    """The number of refused logins of one address in one hour."""

    address: str
    count: int

    # Unix seconds, of the newest.
    at: float


# Guards the newest audit row about them, and the number of rows.
@locked("refused-logins")
def count_refused(db: Connection, action: NewAction) -> None:
    """Count a refused login of the actor's address.

    Once an hour, `action` is added to the audit log with the number of logins refused since.
    """
    now, address = action.at, action.actor.address
    db.execute(
        """INSERT INTO operator_refused_logins (address, hour, count, at) VALUES (?, ?, 1, ?)
           ON CONFLICT (address, hour) DO UPDATE
               SET count = operator_refused_logins.count + 1, at = excluded.at""",
        (address, int(now // _HOUR_S), now),
    )
    db.execute(
        """DELETE FROM operator_refused_logins WHERE at <= ? OR at <= (
               SELECT at FROM operator_refused_logins ORDER BY at DESC LIMIT 1 OFFSET ?)""",
        (now - _RETENTION_S, _MAX_ROWS),
    )
    earlier = actions.find(db, None, 1, subject=action.subject, action=action.action)
    if earlier and now - earlier[0].at < _HOUR_S:
        return
    since = earlier[0].at if earlier else 0.0
    actions.insert(db, attrs.evolve(action, after={"refused": refused_since(db, since)}))


def refused_since(db: Connection, since: float) -> int:
    """Return the number of logins refused in hours whose newest refusal is later."""
    row = db.execute(
        "SELECT coalesce(sum(count), 0) FROM operator_refused_logins WHERE at > ?", (since,)
    ).fetchone()
    return int(row[0])


def list_refused(db: Connection, limit: int) -> list[RefusedLogins]:
    """Return refused logins by address and hour, newest first."""
    rows = db.execute(
        f"""SELECT address, count, at FROM operator_refused_logins
            ORDER BY at DESC, address {dialect_of(db).by_bytes} LIMIT ?""",  # noqa: S608 - constants
        (limit,),
    )
    return [RefusedLogins(**row) for row in rows]
