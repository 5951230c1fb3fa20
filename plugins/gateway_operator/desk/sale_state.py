"""The state of a sale, as shape and words."""

from typing import Literal

import attrs

from gateway.domain import Decision, PaymentState, TaskStatus
from gateway_operator.sql.task_lists import TaskRow

# Drawn as circle, diamond, square, ring and bar.
Shape = Literal["ok", "warn", "bad", "busy", "off"]

_OF_TASK: dict[str, tuple[Shape, str]] = {
    TaskStatus.HELD: ("busy", "held"),
    TaskStatus.QUEUED: ("busy", "queued"),
    TaskStatus.PROCESSING: ("busy", "processing"),
    TaskStatus.COMPLETED: ("ok", "completed"),
    TaskStatus.FAILED: ("bad", "failed"),
    TaskStatus.DROPPED: ("off", "never paid"),
}
_OF_REFUND: dict[str, tuple[Shape, str]] = {
    PaymentState.REFUND_DUE: ("warn", "refund owed"),
    PaymentState.REFUNDING: ("busy", "refund on its way"),
    PaymentState.REFUNDED: ("off", "refunded"),
    PaymentState.REFUND_FAILED: ("bad", "refund failed"),
}


@attrs.frozen(kw_only=True)
class SaleState:
    """The state of a sale."""

    shape: Shape
    words: str

    @property
    def is_refunded(self) -> bool:
        """Whether the money went back."""
        return self.words == _OF_REFUND[PaymentState.REFUNDED][1]


def describe_state(row: TaskRow) -> SaleState:
    """Return the state of a sale. A refund's state takes precedence over the task's."""
    is_rejected = row.decision == Decision.REJECTED
    if row.payment_state == PaymentState.REFUND_FAILED and is_rejected:
        return SaleState(shape="off", words="refund rejected")
    found = _OF_REFUND.get(row.payment_state) or _OF_TASK[row.status]
    return SaleState(shape=found[0], words=found[1])
