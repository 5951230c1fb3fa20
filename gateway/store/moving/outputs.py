"""Which outputs lie on this machine's disk, where other nodes would not find them."""

import attrs

from gateway.domain import StoredResult
from gateway.store.rows import dump, load
from gateway.store.sql import Connection

_AT_ONCE = 100


@attrs.frozen(kw_only=True)
class Finished:
    """A task whose outputs are kept, and its result."""

    task_id: str
    result: StoredResult


def kept_results(db: Connection, after: str) -> list[Finished]:
    """Return a batch of tasks that show outputs, by their ids from `after` on; "" is the first."""
    rows = db.execute(
        """SELECT id, result FROM tasks
           WHERE id > ? AND result IS NOT NULL AND outputs_gone = 0 ORDER BY id LIMIT ?""",
        (after, _AT_ONCE),
    )
    return [Finished(task_id=row[0], result=load(row[1], StoredResult)) for row in rows]


def replace_result(db: Connection, task_id: str, result: StoredResult) -> None:
    """Let a task show its outputs from where they lie now."""
    db.execute("UPDATE tasks SET result = ? WHERE id = ?", (dump(result), task_id))
