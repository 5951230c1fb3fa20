"""The interface of carriers, which send messages. They do not raise, and have time limits."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from gateway_operator.alarms.records import AlarmMessage

Outcomes = dict[int, str | None]
"""By message id: None if sent, else the reason in one sentence."""
LATE = "No answer came in time."


class Carrier(Protocol):
    """Sends messages to the channels of one kind."""

    @property
    def channels(self) -> Sequence[str]:
        """The names of its channels, which contain no secret."""
        ...

    async def carry(self, batches: Mapping[str, Sequence[AlarmMessage]]) -> Outcomes:
        """Send each channel its messages. A message missing from the result was not tried."""
        ...

    def close(self) -> None:
        """Abandon calls that still hang."""
        ...
