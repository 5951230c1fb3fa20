"""The audit log."""

import json
from collections.abc import Callable
from typing import Any

from gateway.errors import ActionRefused
from gateway.store.sql import Connection, Row, lock_names, locked
from gateway_operator.audit_log import ActionRecord, Actor, AlreadyDone, NewAction


# Takes the locks of the write that it runs.
@locked(lambda write, arguments, *_: lock_names(write, arguments))
def act(
    db: Connection,
    write: Callable[..., Any],
    arguments: tuple[Any, ...],
    action: NewAction,
) -> Any:
    """Insert the audit row, then run `write(db, *arguments)` and return its value.

    Raises `AlreadyDone` if the actor's request was carried out before.
    """
    insert(db, action)
    return write(db, *arguments)


def insert(db: Connection, action: NewAction) -> int:
    """Insert an audit row and return its id.

    Raises `AlreadyDone` if the actor's request was carried out before, and `ActionRefused` if its
    key was used for another action.
    """
    actor = action.actor
    if actor.request is not None and (earlier := find_request(db, actor.request)) is not None:
        if not _is_same(earlier, action):
            raise ActionRefused("This Idempotency-Key was used for another action.")
        raise AlreadyDone(earlier)
    row = db.execute(
        """INSERT INTO operator_actions
               (at, door, actor, address, action, subject, reason, before, after, request)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id""",
        (
            *(action.at, actor.door, actor.name, actor.address, action.action, action.subject),
            *(action.reason, _dump(action.before), _dump(action.after), actor.request),
        ),
    ).fetchone()
    return int(row[0])


def current_id(db: Connection) -> int:
    """Return the id of the action whose `act` is running."""
    return int(db.execute("SELECT max(id) FROM operator_actions").fetchone()[0])


def find(
    db: Connection,
    before: int | None,
    limit: int,
    subject: str | None = None,
    action: str | None = None,
) -> list[ActionRecord]:
    """Return actions with an id below `before`, newest first."""
    wanted = {"id < ?": before, "subject = ?": subject, "action = ?": action}
    given = {text: value for text, value in wanted.items() if value is not None}
    where = f"WHERE {' AND '.join(given)}" if given else ""
    rows = db.execute(
        f"SELECT * FROM operator_actions {where} ORDER BY id DESC LIMIT ?",  # noqa: S608 - constants
        (*given.values(), limit),
    )
    return [record_of(row) for row in rows]


def record_of(row: Row) -> ActionRecord:
    """Return the action in a row of `operator_actions`."""
    same = ("id", "at", "action", "subject", "reason")
    return ActionRecord(
        **{name: row[name] for name in same},
        actor=Actor(
            door=row["door"], name=row["actor"], address=row["address"], request=row["request"]
        ),
        before=_load(row["before"]),
        after=_load(row["after"]),
    )


def _is_same(earlier: NewAction, action: NewAction) -> bool:
    facts = (action.action, action.subject, _load(_dump(action.after)))
    return (earlier.action, earlier.subject, earlier.after) == facts


def find_request(db: Connection, request: str) -> ActionRecord | None:
    """Return the action that was done for a request, or None."""
    row = db.execute("SELECT * FROM operator_actions WHERE request = ?", (request,)).fetchone()
    return None if row is None else record_of(row)


def _dump(value: object) -> str | None:
    return None if value is None else json.dumps(value)


def _load(text: str | None) -> object:
    return None if text is None else json.loads(text)
