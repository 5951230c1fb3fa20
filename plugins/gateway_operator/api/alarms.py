"""Alarms: list and mute."""

from typing import Any

from quart import Response

from gateway_operator.alarms import service
from gateway_operator.alarms.durations import parse_length
from gateway_operator.alarms.records import AlarmRecord
from gateway_operator.api.frame import API, answer, read_body, text_of
from gateway_operator.pages.frame import blueprint
from gateway_operator.pages.guards import actor, needs_scope
from gateway_operator.state import operator


@blueprint.get(f"{API}/alarms")
@needs_scope("read")
async def api_alarms() -> Response:
    """Return the alarms, and messages that could not be sent."""
    found = await service.current(operator().desk)
    unsent = [
        {
            "channel": one.channel,
            "key": one.alarm.key,
            "problem": one.problem,
            "failures": one.failures,
            "createdAt": one.created_at,
            "triedAgainAt": one.due_at,
        }
        for one in found.unsent
    ]
    lists = {"now": found.now, "muted": found.muted, "past": found.past}
    rows = {name: [row_of(one) for one in records] for name, records in lists.items()}
    return answer(rows | {"unsent": unsent, "channels": operator().alarms.sender.channels})


@blueprint.post(f"{API}/alarms/<key>/mute")
@needs_scope("act")
async def api_mute(key: str) -> Response:
    """Mute an alarm: `for` is 30m, 1h, 1d, `ends`, or 0 to unmute it."""
    body = await read_body("for", "reason", needed=["for", "reason"])
    for_s = parse_length(text_of(body, "for"))
    reason = text_of(body, "reason")
    return answer(
        row_of(await service.mute(operator().desk, actor(), key, for_s=for_s, reason=reason))
    )


def row_of(record: AlarmRecord) -> dict[str, Any]:
    """Return an alarm as JSON. Times are Unix seconds."""
    return {
        "key": record.key,
        "urgency": record.urgency,
        **{name: record.text.get(name, "") for name in ("title", "text", "todo", "href")},
        "since": record.since,
        "raisedAt": record.raised_at,
        "sentAt": record.told_at,
        "endedAt": record.ended_at,
        "mutedUntil": record.muted_until,
        "muteReason": record.mute_reason,
    }
