"""Task events, which the core keeps until every reading plugin has taken them."""

import enum
from collections.abc import Callable, Sequence
from typing import Any

import attrs


class EventType(enum.StrEnum):
    """The type of an event."""

    TASK_COMPLETED = "task.completed"
    TASK_FAILED = "task.failed"
    REFUND_SENT = "refund.sent"


@attrs.frozen(kw_only=True)
class Event:
    """One event, recorded in the same write as the change that it reports."""

    id: int
    type: EventType
    task_id: str
    # Unix seconds.
    at: float


Take = Callable[[Any, Sequence[Event]], None]
"""`take(db, events)` runs in the write that deletes the events.

It writes to the plugin's own tables, and does nothing that a rollback cannot undo. An error rolls
both back, and the same events come again. The database may also retry a write.
"""


@attrs.frozen(kw_only=True)
class EventReader:
    """The events that a part reads, and the function that takes them.

    Each event is kept, even across restarts, until the write with `take` is durable. Events may
    come in any order.
    """

    take: Take
    types: Sequence[EventType] = tuple(EventType)
    # Only of tasks whose buyer named a `callbackUrl`.
    only_with_callback: bool = False
    # Called after events were taken, for example to wake a worker; must not block.
    on_taken: Callable[[], None] | None = None
