"""List and mute alarms, for pages, API and commands."""

from collections.abc import Sequence

import attrs

from gateway.errors import ActionRefused, WrongValue
from gateway_operator.alarms.records import AlarmMessage, AlarmRecord
from gateway_operator.audit_log import Actor, AlreadyDone, NewAction
from gateway_operator.desk.desk import Desk
from gateway_operator.sql import alarm_messages, alarms

URGENT_MUTE_S = 86_400.0
# The year 2100.
UNTIL_IT_ENDS = 4_102_444_800.0
_MAX_MUTE_S = 30 * 86_400.0
_PAST = 50
_UNSENT = 20
_UNSENT_S = 7 * 86_400.0
_MAX_REASON_CHARS = 500


@attrs.frozen(kw_only=True)
class Alarms:
    """The current alarms."""

    # The most urgent first.
    now: Sequence[AlarmRecord]
    muted: Sequence[AlarmRecord]
    # Newest first.
    past: Sequence[AlarmRecord]
    # Not accepted within the last week, newest first.
    unsent: Sequence[AlarmMessage]


async def current(desk: Desk) -> Alarms:
    """Return raised, muted and past alarms, and messages that could not be sent."""
    now = desk.now()
    held = [one for one in await desk.store.sum(alarms.open_alarms) if one.raised_at is not None]
    order = {"urgent": 0, "soon": 1, "notice": 2}
    held.sort(key=lambda one: (order[one.urgency], one.since))
    return Alarms(
        now=[one for one in held if not one.is_muted(now)],
        muted=[one for one in held if one.is_muted(now)],
        past=await desk.store.sum(alarms.past_alarms, _PAST),
        unsent=await desk.store.sum(alarm_messages.unsent, now - _UNSENT_S, _UNSENT),
    )


async def mute(
    desk: Desk, actor: Actor, key: str, *, for_s: float | None, reason: str
) -> AlarmRecord:
    """Mute an alarm for `for_s` seconds; None mutes it until it ends, 0 unmutes it.

    Raises `WrongValue` and `ActionRefused`.
    """
    reason = reason.strip()[:_MAX_REASON_CHARS]
    if not reason:
        raise WrongValue("Give a reason for the mute: it is kept in the audit log.")
    now = desk.now()
    record = await _find(desk, key)
    until = _end_of(record, for_s, now)
    action = NewAction(
        actor=actor,
        at=now,
        action="alarm.mute" if until is not None else "alarm.unmute",
        subject=record.key,
        reason=reason,
        before={"mutedUntil": record.muted_until},
        # The end of the mute would differ in a repeated request.
        after={"forSeconds": for_s},
    )
    try:
        await desk.records.act(alarms.set_mute, record.id, until, reason, action=action)
    except AlreadyDone:
        return await _find(desk, key)
    return attrs.evolve(
        record, muted_until=until, mute_reason=reason if until is not None else None
    )


def _end_of(record: AlarmRecord, for_s: float | None, now: float) -> float | None:
    """Return the end of a mute; None: unmute. Raises `WrongValue`."""
    if record.urgency == "urgent" and (for_s is None or for_s > URGENT_MUTE_S):
        raise WrongValue("An urgent alarm is muted for 24 hours at most.")
    if for_s is None:
        return UNTIL_IT_ENDS
    if not 0 <= for_s <= _MAX_MUTE_S:
        raise WrongValue("An alarm is muted for 30 days at most, or until it ends.")
    return now + for_s if for_s else None


async def _find(desk: Desk, key: str) -> AlarmRecord:
    """Return a raised alarm by its key; raises `ActionRefused`."""
    condition, _, subject = key.partition(":")
    record = await desk.store.sum(alarms.find_open, condition, subject)
    if record is None or record.raised_at is None:
        raise ActionRefused(f"No alarm {key!r} is on. `gateway alarms` lists those that are.")
    return record
