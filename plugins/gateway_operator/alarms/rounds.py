"""One round of the alarms: their next state from the current conditions. Pure; time is `now`.

A condition that holds long enough is raised and reported, again when it becomes urgent, and every
24 hours while it is. It ends after five minutes without the condition, which is reported too. A
muted alarm sends no messages.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from gateway.contracts.parts import AlarmEvent, Urgency
from gateway_operator.alarms.messages import message_of
from gateway_operator.alarms.records import RANKS, AlarmRecord
from gateway_operator.desk.conditions import Condition
from gateway_operator.sql.alarms import Step

CALM_S = 300.0
AGAIN_S = 86_400.0
URGENCIES: Mapping[str, Urgency] = {"bad": "urgent", "warn": "soon", "note": "notice"}
# Seconds that a condition must hold to be raised; 0 for all others.
HOLDS_S: Mapping[str, float] = {
    "check": 30.0,
    "gas": 60.0,
    "refund_key": 60.0,
    "rpc": 120.0,
    "clock": 120.0,
    "queue": 120.0,
    # A new gateway makes its first backup soon.
    "backup": 3_600.0,
}


@attrs.frozen(kw_only=True)
class Round:
    """Evaluates all alarms at one moment."""

    conditions: Sequence[Condition]
    # Unix seconds.
    now: float
    base_url: str
    gateway: str
    # Without a channel no alarm counts as reported.
    has_channels: bool = True
    # By condition: alarms that began after this time do not end, because whether the condition
    # still holds is not known.
    uncertain: Mapping[str, float] = attrs.field(factory=dict)

    def judge(
        self, records: Sequence[AlarmRecord], mutes: Iterable[AlarmRecord] = ()
    ) -> list[Step]:
        """Return the next state of each alarm that changes.

        `records` are the open alarms, `mutes` ended alarms whose mute has not expired.
        """
        return list(self._judge(records, {(one.condition, one.subject): one for one in mutes}))

    def _judge(
        self, records: Sequence[AlarmRecord], mutes: Mapping[tuple[str, str], AlarmRecord]
    ) -> Iterator[Step]:
        left = {(one.condition, one.subject): one for one in records}
        for condition in self.conditions:
            name = (condition.condition, condition.subject)
            earlier = left.pop(name, None)
            step = self._hold(condition, earlier or self._begin(condition, mutes.get(name)))
            if step.record != earlier:
                yield step
        for record in left.values():
            step = self._calm(record)
            if step.record != record or step.is_deleted:
                yield step

    def _begin(self, condition: Condition, muted: AlarmRecord | None) -> AlarmRecord:
        return AlarmRecord(
            condition=condition.condition,
            subject=condition.subject,
            urgency=URGENCIES[condition.level],
            text=_text_of(condition),
            since=self.now,
            urgent_since=self.now,
            muted_until=muted.muted_until if muted else None,
            mute_reason=muted.mute_reason if muted else None,
        )

    def _hold(self, condition: Condition, record: AlarmRecord) -> Step:
        record = self._update(condition, record)
        holds_s = HOLDS_S.get(condition.condition, 0.0)
        if self.now - record.urgent_since < holds_s:
            return Step(record=record)
        if record.raised_at is None:
            record = attrs.evolve(record, raised_at=self.now)
        event = self._due_event(record)
        if event is None:
            return Step(record=record)
        sent = attrs.evolve(record, told_at=self.now, told_urgency=record.urgency)
        return Step(record=sent, alarms=(message_of(sent, event, self.base_url, self.gateway),))

    def _update(self, condition: Condition, record: AlarmRecord) -> AlarmRecord:
        urgency = URGENCIES[condition.level]
        changes: dict[str, Any] = {}
        if RANKS[urgency] > RANKS[record.urgency]:
            # The mute was for a less urgent condition.
            changes = {"urgent_since": self.now, "muted_until": None, "mute_reason": None}
        elif urgency != record.urgency:
            changes = {"urgent_since": record.since}
        return attrs.evolve(
            record, urgency=urgency, text=_text_of(condition), calm_since=None, **changes
        )

    def _due_event(self, record: AlarmRecord) -> AlarmEvent | None:
        """Return the event to report now, or None."""
        if not self.has_channels or record.is_muted(self.now):
            return None
        if record.told_at is None or record.told_urgency is None:
            return "raised"
        if RANKS[record.urgency] > RANKS[record.told_urgency]:
            return "raised"
        is_day_over = self.now - record.told_at >= AGAIN_S
        return "again" if record.urgency == "urgent" and is_day_over else None

    def _calm(self, record: AlarmRecord) -> Step:
        if record.raised_at is None:
            return Step(record=record, is_deleted=True)
        if record.since > self.uncertain.get(record.condition, math.inf):
            return Step(record=attrs.evolve(record, calm_since=None))
        if record.calm_since is None:
            return Step(record=attrs.evolve(record, calm_since=self.now))
        if self.now - record.calm_since < CALM_S:
            return Step(record=record)
        ended = attrs.evolve(record, ended_at=self.now)
        reports_end = record.told_at is not None and record.urgency != "notice"
        if not reports_end or not self.has_channels or record.is_muted(self.now):
            return Step(record=ended)
        return Step(record=ended, alarms=(message_of(ended, "ended", self.base_url, self.gateway),))


def _text_of(condition: Condition) -> dict[str, str]:
    return {
        "title": condition.title,
        "text": condition.text,
        "todo": condition.action,
        "href": condition.href,
    }
