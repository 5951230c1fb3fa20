"""What the queue of webhook events promises; tasks and refunds put events in by their writes."""

import enum
from collections.abc import Collection
from typing import Protocol

import attrs


class EventType(enum.StrEnum):
    """What happened, as the receiver reads it."""

    TASK_COMPLETED = "task.completed"
    TASK_FAILED = "task.failed"
    REFUND_SENT = "refund.sent"


@attrs.frozen(kw_only=True)
class WebhookEvent:
    """One event that is to be delivered."""

    id: int
    task_id: str
    type: EventType

    # The buyer's address. Many hold a secret, so it is not shown.
    url: str = attrs.field(repr=False)

    # Of the address, in lower case.
    host: str
    payer: str = attrs.field(repr=False)

    # When it happened, in Unix seconds.
    at: float

    # Attempts to deliver it that have failed.
    failures: int

    @property
    def message_id(self) -> str:
        """The `webhook-id`: the same for each attempt, and after a restart."""
        return f"msg_{self.type.replace('.', '_')}_{self.task_id}"


class WebhookQueue(Protocol):
    """Events that wait for their delivery. Each method is one write, or one read."""

    async def due(
        self,
        limit: int,
        *,
        now: float,
        sending: Collection[int] = (),
        busy_payers: Collection[str] = (),
        busy_hosts: Collection[str] = (),
    ) -> list[WebhookEvent]:
        """Return events that may be sent; those that have never failed come first.

        Left out are the ids in `sending`, and all events of busy payers and to busy hosts.
        """
        ...

    async def earliest(self) -> float | None:
        """Return when the first event of all is or was due, or None where none waits.

        It costs next to nothing: every task that ends is a reason to ask.
        """
        ...

    async def next_due(self, *, now: float) -> float | None:
        """Return the next time after `now` at which an event may be sent, or None."""
        ...

    async def postpone(self, event: WebhookEvent, *, until: float) -> None:
        """Let every event of this payer to this host wait at least until then."""
        ...

    async def retry(self, event: WebhookEvent, *, due_at: float) -> None:
        """Write down that an attempt has failed, and when the next one is due."""
        ...

    async def end(self, event: WebhookEvent) -> None:
        """Forget an event: it was delivered or given up."""
        ...
