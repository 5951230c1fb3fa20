"""The fallbacks that operators chose. The core reads them itself."""

import attrs

from gateway.errors import StaleForm
from gateway.store.sql import Connection, locked
from gateway_operator.sql.actions import current_id


@attrs.frozen(kw_only=True)
class ChosenFallback:
    """The newest choice of an endpoint's fallback; None: it has none."""

    slug: str
    fallback: str | None
    # Unix seconds.
    at: float
    actor: str


# Guards the newest choice, which the operator has seen.
@locked("overrides")
def insert(db: Connection, slug: str, fallback: str | None, seen: str | None, now: float) -> None:
    """Choose a fallback; None removes it. Raises `StaleForm` if the newest choice is not `seen`."""
    if newest(db, slug) != seen:
        raise StaleForm(
            f"The fallback of {slug} was changed meanwhile. Nothing was done. "
            "Check it and try again."
        )
    db.execute(
        "INSERT INTO endpoint_fallbacks (slug, fallback, at, action_id) VALUES (?, ?, ?, ?)",
        (slug, fallback, now, current_id(db)),
    )


def newest(db: Connection, slug: str) -> str | None:
    """Return the chosen fallback of an endpoint, or None."""
    row = db.execute(
        "SELECT fallback FROM endpoint_fallbacks WHERE slug = ? ORDER BY id DESC LIMIT 1", (slug,)
    ).fetchone()
    return None if row is None else row[0]


def chosen(db: Connection) -> list[ChosenFallback]:
    """Return the newest choice of each endpoint, if it names a fallback."""
    rows = db.execute(
        """SELECT f.slug, f.fallback, f.at, a.actor
           FROM endpoint_fallbacks f JOIN operator_actions a ON a.id = f.action_id
           WHERE f.id IN (SELECT max(id) FROM endpoint_fallbacks GROUP BY slug)
               AND f.fallback IS NOT NULL ORDER BY f.slug"""
    )
    names = [field.name for field in attrs.fields(ChosenFallback)]
    return [ChosenFallback(**dict(zip(names, row, strict=True))) for row in rows]


def ever_chosen(db: Connection) -> list[str]:
    """Return every slug that was ever a fallback: it may have made tasks without a sale."""
    rows = db.execute("SELECT DISTINCT fallback FROM endpoint_fallbacks WHERE fallback <> ''")
    return [row[0] for row in rows]
