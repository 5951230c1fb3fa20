"""Events of tasks, which the core keeps until each plugin that reads them has taken them."""

import enum
from collections.abc import Callable, Sequence
from typing import Any

import attrs


class EventType(enum.StrEnum):
    """What happened."""

    TASK_COMPLETED = "task.completed"
    TASK_FAILED = "task.failed"
    REFUND_SENT = "refund.sent"


@attrs.frozen(kw_only=True)
class Event:
    """One event. The core wrote it in the write that made it true."""

    id: int
    type: EventType
    task_id: str

    # Unix seconds.
    at: float


Take = Callable[[Any, Sequence[Event]], None]
"""`take(db, events)` runs in the write that deletes the events.

It writes rows of the plugin's own tables, and does nothing that a rollback cannot undo. An error
rolls both back, and the same events come again. The database may also run a write twice.
"""


@attrs.frozen(kw_only=True)
class EventReader:
    """The events that a part wants, and the function that takes them.

    Each event is kept until `take` has returned and its write is durable, across restarts as well.
    Two events may come in either order.
    """

    take: Take
    types: Sequence[EventType] = tuple(EventType)

    # Only of tasks whose buyer named a `callbackUrl`.
    only_with_callback: bool = False

    # Called after events were taken, for example to wake a worker; returns at once.
    on_taken: Callable[[], None] | None = None
