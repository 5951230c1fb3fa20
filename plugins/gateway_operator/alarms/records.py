"""Alarms and their messages as the database stores them."""

from typing import Any

import attrs

from gateway.contracts.parts import Alarm, Urgency

RANKS: dict[str, int] = {"notice": 0, "soon": 1, "urgent": 2}


@attrs.frozen(kw_only=True)
class AlarmRecord:
    """A condition that holds or held. Times are Unix seconds."""

    condition: str

    # A slug, a vendor or a key; empty for the gateway itself.
    subject: str
    urgency: Urgency

    # JSON: title, text, todo, href.
    text: dict[str, Any]

    # First seen; and when it reached its current urgency.
    since: float
    urgent_since: float

    # None: it has not held long enough yet.
    raised_at: float | None = None

    # When a message was last queued, and the urgency then.
    told_at: float | None = None
    told_urgency: Urgency | None = None
    calm_since: float | None = None
    ended_at: float | None = None
    muted_until: float | None = None
    mute_reason: str | None = None

    # None: not stored yet.
    id: int | None = None

    @property
    def key(self) -> str:
        """The name by which operators mute it."""
        return key_of(self.condition, self.subject)

    def is_muted(self, now: float) -> bool:
        """Whether it is muted now."""
        return self.muted_until is not None and self.muted_until > now

    def is_on(self, now: float) -> bool:
        """Whether it is raised and not muted."""
        return self.raised_at is not None and self.ended_at is None and not self.is_muted(now)


@attrs.frozen(kw_only=True)
class AlarmMessage:
    """A message for one channel, stored until it is sent or given up."""

    id: int

    # Such as `webhook`, or `ntfy-3f2a19c0`.
    channel: str
    alarm: Alarm
    created_at: float

    # The next attempt; None: sent or given up.
    due_at: float | None
    failures: int = 0

    problem: str | None = None
    told_at: float | None = None


def key_of(condition: str, subject: str) -> str:
    """Return the key of an alarm, such as `off_sale:openai`, or `gas`."""
    return f"{condition}:{subject}" if subject else condition
