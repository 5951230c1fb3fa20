"""Logins that were refused: sums by address and hour, as functions of a connection.

Strangers cause them, and a row of the audit log is kept for ever. So each address has one row an
hour here, which goes after a week, and the audit log one row an hour at most.
"""

import attrs

from gateway.store.locks import locked
from gateway.store.sql import Connection, dialect_of
from gateway_operator.audit_log import NewAction
from gateway_operator.sql import actions

_HOUR_S = 3600
_KEPT_S = 7 * 86_400
_MOST_ROWS = 10_000


@attrs.frozen(kw_only=True)
class RefusedLogins:
    """How many logins of one address were refused in one hour."""

    address: str
    count: int

    # Unix seconds, of the newest.
    at: float


# When the audit log was last told of them, and how many rows there are.
@locked("refused-logins")
def count_refused(db: Connection, action: NewAction) -> None:
    """Count a refused login of the actor's address; write the sum into the audit log once an hour.

    `action` is the row for the audit log; this adds to it what was counted since the one before.
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
        (now - _KEPT_S, _MOST_ROWS),
    )
    earlier = actions.find(db, None, 1, subject=action.subject, action=action.action)
    if earlier and now - earlier[0].at < _HOUR_S:
        return
    since = earlier[0].at if earlier else 0.0
    actions.insert(db, attrs.evolve(action, after={"refused": refused_since(db, since)}))


def refused_since(db: Connection, since: float) -> int:
    """Return how many logins were refused in the hours whose newest refusal is later."""
    row = db.execute(
        "SELECT coalesce(sum(count), 0) FROM operator_refused_logins WHERE at > ?", (since,)
    ).fetchone()
    return int(row[0])


def list_refused(db: Connection, limit: int) -> list[RefusedLogins]:
    """Return refused logins by address and hour, the newest first."""
    rows = db.execute(
        f"""SELECT address, count, at FROM operator_refused_logins
            ORDER BY at DESC, address {dialect_of(db).by_bytes} LIMIT ?""",  # noqa: S608 - constants
        (limit,),
    )
    return [RefusedLogins(**row) for row in rows]
