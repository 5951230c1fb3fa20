"""The events that webhooks deliver; tasks and refunds write them."""

import enum

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
