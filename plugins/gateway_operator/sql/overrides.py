"""Operators' overrides of endpoints. The core reads them itself."""

from typing import Any, Literal

from gateway.errors import ActionRefused, StaleForm
from gateway.store.endpoint_changes import find_steps, join_price, put_steps, split_price
from gateway.store.rows import SOLD
from gateway.store.sql import Connection, locked
from gateway_operator.sql.actions import current_id
from gateway_operator.sql.sums import sold_by

Field = Literal["paused", "price", "cost"]


# Guards the newest override, which the operator has seen.
@locked("overrides")
def insert(
    db: Connection,
    slug: str,
    field: Field,
    value: str | None,
    seen: str | None,
    now: float,
    refusal: ActionRefused | None = None,
) -> None:
    """Write an override; None removes it.

    Raises `refusal`, if given: the request is now known not to be a repeat. Raises `StaleForm` if
    the newest value is not `seen`.
    """
    if refusal is not None:
        raise refusal
    newest = newest_value(db, slug, field)
    if newest != seen:
        raise StaleForm(
            f"The {field} of {slug} was changed meanwhile. Nothing was done. "
            "Check it and try again."
        )
    units, steps = (value, "")
    if field == "price" and value is not None:
        units, steps = split_price(value)
    row = db.execute(
        """INSERT INTO endpoint_overrides (slug, field, value, at, action_id)
           VALUES (?, ?, ?, ?, ?) RETURNING id""",
        (slug, field, units, now, current_id(db)),
    ).fetchone()
    if steps:
        put_steps(db, int(row[0]), steps)


def newest_value(db: Connection, slug: str, field: Field) -> str | None:
    """Return the current override; None if there is none."""
    row = db.execute(
        """SELECT id, value FROM endpoint_overrides WHERE slug = ? AND field = ?
           ORDER BY id DESC LIMIT 1""",
        (slug, field),
    ).fetchone()
    return None if row is None else join_price(row["value"], find_steps(db).get(row["id"]))


def history(db: Connection, slug: str, limit: int) -> list[dict[str, Any]]:
    """Return the overrides of an endpoint, newest first, with actor and reason."""
    rows = db.execute(
        """SELECT o.id, o.field, o.value, o.at, a.door, a.actor, a.reason
           FROM endpoint_overrides o JOIN operator_actions a ON a.id = o.action_id WHERE o.slug = ?
           ORDER BY o.id DESC LIMIT ?""",
        (slug, limit),
    )
    steps, found = find_steps(db), [dict(row) for row in rows]
    for one in found:
        one["value"] = join_price(one["value"], steps.get(one.pop("id")))
    return found


def sold_since(db: Connection, slug: str, since: float) -> tuple[int, int]:
    """Return the number of sales of an endpoint since then, and their sum in units."""
    row = db.execute(
        f"""SELECT count(*), coalesce(sum(p.paid_units), 0) FROM tasks t
           JOIN payments p ON p.id = t.payment_id
           WHERE t.created_at > ? AND {sold_by(db)} = ?
               AND p.paid_units IS NOT NULL""",  # noqa: S608 - constants
        (since, slug),
    ).fetchone()
    return int(row[0]), int(row[1])


def unfinished(db: Connection, slug: str) -> int:
    """Return the number of paid tasks, queued or running, that an endpoint sold or makes."""
    return int(
        db.execute(
            f"""SELECT count(*) FROM tasks t WHERE (slug = ? OR {SOLD} = ?)
                AND status IN ('queued', 'processing')""",  # noqa: S608 - constants
            (slug, slug),
        ).fetchone()[0]
    )
