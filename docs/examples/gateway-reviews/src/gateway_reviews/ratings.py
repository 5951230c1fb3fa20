"""The SQL of this plugin. Each function runs inside one read or one write of the database."""

from collections.abc import Sequence
from typing import Any

from gateway import Event


def add(db: Any, task_id: str, stars: int) -> bool:
    """Write down the rating of a completed task; False if there is no such task."""
    found = db.execute("SELECT 1 FROM tasks WHERE id = ? AND status = 'completed'", (task_id,))
    if found.fetchone() is None:
        return False
    db.execute(
        """INSERT INTO reviews_ratings (task_id, stars) VALUES (?, ?)
           ON CONFLICT (task_id) DO UPDATE SET stars = excluded.stars""",
        (task_id, stars),
    )
    return True


def averages(db: Any) -> dict[str, float]:
    """Return the average of the stars of each endpoint."""
    rows = db.execute(
        """SELECT t.slug, sum(r.stars) AS stars, count(*) AS ratings
           FROM reviews_ratings r JOIN tasks t ON t.id = r.task_id GROUP BY t.slug"""
    )
    return {row["slug"]: row["stars"] / row["ratings"] for row in rows.fetchall()}


def note_purchases(db: Any, events: Sequence[Event]) -> None:
    """Write down completed tasks. The gateway deletes the events in the same transaction."""
    for event in events:
        db.execute(
            "INSERT INTO reviews_purchases (task_id) VALUES (?) ON CONFLICT (task_id) DO NOTHING",
            (event.task_id,),
        )


def purchases(db: Any) -> dict[str, int]:
    """Return how many purchases of each endpoint have completed."""
    rows = db.execute(
        """SELECT t.slug, count(*) AS purchases
           FROM reviews_purchases p JOIN tasks t ON t.id = p.task_id GROUP BY t.slug"""
    )
    return {row["slug"]: row["purchases"] for row in rows.fetchall()}
