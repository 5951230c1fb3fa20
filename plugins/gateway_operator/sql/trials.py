"""The limits of generations that are no sale, counted over all nodes by the audit log."""

import math
from collections.abc import Mapping

import attrs

from gateway.errors import ActionRefused
from gateway.store.sql import Connection, locked
from gateway_operator.audit_log import ActionRecord
from gateway_operator.sql.actions import current_id, find

MOST_AN_HOUR = 10
BEGUN, ENDED = "endpoint.make", "endpoint.made"
_HOUR_S = 3_600.0


@attrs.frozen(kw_only=True)
class StoredTrial:
    """The rows of the newest generation of an endpoint; `ended` is None while it runs."""

    begun: ActionRecord
    ended: ActionRecord | None


# The number of the last hour must not change under us.
@locked("trials")
def check_room(db: Connection, timeouts_s: Mapping[str, float], now: float) -> None:
    """Raise `ActionRefused` while another runs, and after ten in an hour, on any node.

    It runs with the write of the new row, which does not count. `timeouts_s` are by slug: what has
    no end by then does not run any more.
    """
    rows = db.execute(
        """SELECT id, at, subject FROM operator_actions
           WHERE action = ? AND at > ? AND id < ? ORDER BY at""",
        (BEGUN, now - _HOUR_S, current_id(db)),
    ).fetchall()
    # Another node may have endpoints that this one does not know.
    longest_s = max(timeouts_s.values(), default=0.0)
    for number, at, slug in rows:
        if at + timeouts_s.get(slug, longest_s) > now and _find_end(db, number, slug) is None:
            raise ActionRefused(f"One of {slug} is being made. Wait until it has ended.")
    if len(rows) >= MOST_AN_HOUR:
        wait_s = rows[-MOST_AN_HOUR][1] + _HOUR_S - now
        raise ActionRefused(
            f"{MOST_AN_HOUR} were made within an hour. Try again in {math.ceil(wait_s / 60)} "
            "minutes."
        )


def find_newest(db: Connection, slug: str) -> StoredTrial | None:
    """Return the newest generation of an endpoint, or None."""
    for begun in find(db, None, 1, subject=slug, action=BEGUN):
        return StoredTrial(begun=begun, ended=_find_end(db, begun.id, slug))
    return None


def _find_end(db: Connection, begun_id: int, slug: str) -> ActionRecord | None:
    newest = find(db, None, 1, subject=slug, action=ENDED)
    return newest[0] if newest and newest[0].id > begun_id else None
