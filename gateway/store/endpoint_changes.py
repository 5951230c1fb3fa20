"""Runtime changes of endpoints (pause, price, cost), which override the settings file."""

import json
from collections.abc import Mapping
from typing import Any

from gateway.contracts.store import EarlierPrice, EndpointChange
from gateway.domain import QUOTE_LIFE_S
from gateway.store.sql import Connection, Row


def changes_after(
    db: Connection, known: int, now: float
) -> tuple[int, dict[str, EndpointChange]] | None:
    """Return (revision, changes by slug), or None if `known` is the current revision.

    The revision grows with each change. This is cheap: a running gateway polls every two seconds.
    """
    newest = _count(db)
    return None if newest == known else (newest, _changes(db, now))


def _count(db: Connection) -> int:
    """Count the overrides, which are never deleted.

    The newest id would not work as a revision: two nodes may commit ids out of order.
    """
    return int(db.execute("SELECT count(*) FROM endpoint_overrides").fetchone()[0])


def _changes(db: Connection, now: float) -> dict[str, EndpointChange]:
    """Return changes by slug, with earlier prices whose 402s are still valid."""
    rows = db.execute(
        """SELECT o.slug, o.field, o.value, o.at, a.reason FROM endpoint_overrides o
           JOIN operator_actions a ON a.id = o.action_id
           WHERE o.id IN (SELECT max(id) FROM endpoint_overrides GROUP BY slug, field)"""
    ).fetchall()
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        facts = found.setdefault(row["slug"], {"changed_at": 0.0})
        facts["changed_at"] = max(facts["changed_at"], row["at"])
        facts |= _read_newest(row)
    return {
        slug: EndpointChange(**facts, earlier_prices=_earlier_prices(db, slug, now))
        for slug, facts in found.items()
    }


def _read_newest(row: Row) -> dict[str, Any]:
    if row["value"] is None:
        return {}
    if row["field"] == "paused":
        return {"paused_since": row["at"], "pause_reason": row["reason"]}
    if row["field"] == "price":
        return _read_price(row["value"])
    return {"cost_micros": int(row["value"])}


def write_price(price_units: int, more_units: Mapping[str, int]) -> str:
    """Return prices as the value of an override."""
    if not more_units:
        return str(price_units)
    return json.dumps({"units": price_units, "more": dict(more_units)})


def _read_price(value: str | None) -> dict[str, Any]:
    if value is None:
        return {"price_units": None}
    if value.isdigit():
        return {"price_units": int(value)}
    written = json.loads(value)
    return {"price_units": written["units"], "more_units": written["more"]}


def _earlier_prices(db: Connection, slug: str, now: float) -> tuple[EarlierPrice, ...]:
    """Return prices replaced within the lifetime of a 402, newest first."""
    rows = db.execute(
        """SELECT value, at FROM endpoint_overrides WHERE slug = ? AND field = 'price'
           ORDER BY id DESC LIMIT 50""",
        (slug,),
    ).fetchall()
    earlier = []
    for place, row in enumerate(rows):
        if row["at"] + QUOTE_LIFE_S <= now:
            break
        # Before its first override, the endpoint had the price of the settings file.
        before = rows[place + 1]["value"] if place + 1 < len(rows) else None
        earlier.append(EarlierPrice(**_read_price(before), good_until=row["at"] + QUOTE_LIFE_S))
    return tuple(earlier)
