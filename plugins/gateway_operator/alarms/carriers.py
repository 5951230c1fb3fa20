"""What carries messages to one kind of channel. No carrier raises, and each has a time limit."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from gateway_operator.alarms.records import AlarmMessage

Outcomes = dict[int, str | None]
"""By the message's id: None where it was taken, else a sentence that says why not."""
LATE = "No answer came in time."


class Carrier(Protocol):
    """Carries messages to its channels."""

    @property
    def channels(self) -> Sequence[str]:
        """The names of its channels; no name holds a secret."""
        ...

    async def carry(self, batches: Mapping[str, Sequence[AlarmMessage]]) -> Outcomes:
        """Tell each channel its messages; a message that is left out was not tried."""
        ...

    def close(self) -> None:
        """Give up what still hangs; called once nothing is carried any more."""
        ...
