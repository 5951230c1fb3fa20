"""Runtime changes of endpoints (pause, price, cost, fallback), which override the settings file."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from gateway.contracts.store import EarlierPrice, EndpointChange
from gateway.domain import QUOTE_LIFE_S
from gateway.store.sql import Connection, Row

_STEPS = "price_steps."


class PriceText(NamedTuple):
    """A price override as one text.

    The previous release, which may run beside this one, can read only a number in the table. So
    prices that were set apart are in `meta`.
    """

    units: str
    # JSON of the prices that were set apart; empty: none.
    steps: str


def changes_after(
    db: Connection, known: int, now: float
) -> tuple[int, dict[str, EndpointChange]] | None:
    """Return (revision, changes by slug), or None if `known` is the current revision.

    The revision grows with each change. This is cheap: a running gateway polls every two seconds.
    """
    newest = _count(db)
    return None if newest == known else (newest, _changes(db, now))


def _count(db: Connection) -> int:
    """Count the overrides and fallbacks, which are never deleted.

    The newest id would not work as a revision: two nodes may commit ids out of order.
    """
    return int(
        db.execute(
            """SELECT (SELECT count(*) FROM endpoint_overrides)
                   + (SELECT count(*) FROM endpoint_fallbacks)"""
        ).fetchone()[0]
    )


def _changes(db: Connection, now: float) -> dict[str, EndpointChange]:
    """Return changes by slug, with earlier prices whose 402s are still valid."""
    rows = db.execute(
        """SELECT o.id, o.slug, o.field, o.value, o.at, a.reason FROM endpoint_overrides o
           JOIN operator_actions a ON a.id = o.action_id
           WHERE o.id IN (SELECT max(id) FROM endpoint_overrides GROUP BY slug, field)"""
    ).fetchall()
    found: dict[str, dict[str, Any]] = {}
    steps = find_steps(db)
    for row in rows:
        facts = found.setdefault(row["slug"], {"changed_at": 0.0})
        facts["changed_at"] = max(facts["changed_at"], row["at"])
        facts |= _read_newest(row, steps)
    for row in newest_fallbacks(db):
        facts = found.setdefault(row["slug"], {"changed_at": 0.0})
        facts |= {
            "changed_at": max(facts["changed_at"], row["at"]),
            "fallback": row["fallback"],
        }
    return {
        slug: EndpointChange(**facts, earlier_prices=_earlier_prices(db, slug, steps, now))
        for slug, facts in found.items()
    }


def newest_fallbacks(db: Connection) -> list[Row]:
    """Return the newest row of each slug with slug, fallback and time.

    A table of its own: earlier releases would read a further field of an override as a cost.
    """
    return db.execute(
        """SELECT slug, fallback, at FROM endpoint_fallbacks
           WHERE id IN (SELECT max(id) FROM endpoint_fallbacks GROUP BY slug)"""
    ).fetchall()


def _read_newest(row: Row, steps: Mapping[int, str]) -> dict[str, Any]:
    if row["value"] is None:
        return {}
    if row["field"] == "paused":
        return {"paused_since": row["at"], "pause_reason": row["reason"]}
    if row["field"] == "price":
        return _read_price(row["value"], steps.get(row["id"]))
    return {"cost_micros": int(row["value"])}


def write_price(price_units: int, more_units: Mapping[str, int]) -> str:
    """Return prices as the value of an override."""
    if not more_units:
        return str(price_units)
    return json.dumps({"units": price_units, "more": dict(more_units)})


def split_price(value: str) -> PriceText:
    """Return the parts of a text by `write_price`."""
    if value.isdigit():
        return PriceText(value, "")
    written = json.loads(value)
    return PriceText(str(written["units"]), json.dumps(written["more"]))


def find_steps(db: Connection) -> dict[int, str]:
    """Return the prices that were set apart, as JSON by the id of their override."""
    rows = db.execute("SELECT key, value FROM meta WHERE key LIKE ?", (f"{_STEPS}%",)).fetchall()
    return {int(str(row[0]).removeprefix(_STEPS)): str(row[1]) for row in rows}


def join_price(value: str | None, steps: str | None) -> str | None:
    """Return an override as `write_price` wrote it."""
    if value is None or steps is None:
        return value
    return write_price(int(value), json.loads(steps))


def put_steps(db: Connection, override_id: int, steps: str) -> None:
    """Store the prices of an override that were set apart."""
    db.execute("INSERT INTO meta (key, value) VALUES (?, ?)", (f"{_STEPS}{override_id}", steps))


def _read_price(value: str | None, steps: str | None) -> dict[str, Any]:
    if value is None:
        return {"price_units": None}
    more = {} if steps is None else json.loads(steps)
    return {"price_units": int(value), "more_units": more}


def _earlier_prices(
    db: Connection, slug: str, steps: Mapping[int, str], now: float
) -> tuple[EarlierPrice, ...]:
    """Return prices replaced within the lifetime of a 402, newest first."""
    rows = db.execute(
        """SELECT id, value, at FROM endpoint_overrides WHERE slug = ? AND field = 'price'
           ORDER BY id DESC LIMIT 50""",
        (slug,),
    ).fetchall()
    earlier = []
    for place, row in enumerate(rows):
        if row["at"] + QUOTE_LIFE_S <= now:
            break
        # Before its first override, the endpoint had the price of the settings file.
        before = rows[place + 1] if place + 1 < len(rows) else None
        price = (
            _read_price(None, None)
            if before is None
            else _read_price(before["value"], steps.get(before["id"]))
        )
        earlier.append(EarlierPrice(**price, good_until=row["at"] + QUOTE_LIFE_S))
    return tuple(earlier)
