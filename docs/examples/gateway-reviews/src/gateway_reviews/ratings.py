"""The SQL of this plugin. Each function runs inside one read or one write of the database."""

from typing import Any


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
