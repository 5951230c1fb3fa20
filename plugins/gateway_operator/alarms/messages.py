"""The text of messages: condition, start, action and link.

Texts contain no private key, but may contain a vendor's message and the keys' addresses.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

import attrs

from gateway.contracts.parts import Alarm, AlarmEvent
from gateway_operator.alarms.records import AlarmRecord

# A vendor's text may be long; a phone shows a few lines.
_MAX_TEXT_CHARS = 1_000
_MAX_TITLE_CHARS = 200
# Mentions in Discord, Slack and Telegram; a vendor's message may contain one.
_MENTION = re.compile(r"@(?=everyone|here|channel|all)|<(?=[@!#])", re.IGNORECASE)
_WORDS = {"raised": "", "again": "Still: ", "ended": "Over: ", "digest": "", "test": ""}
_URGENCY_WORDS = {"urgent": "Urgent", "soon": "Soon", "notice": "Notice"}


def message_of(record: AlarmRecord, event: AlarmEvent, base_url: str, gateway: str) -> Alarm:
    """Return the message about an alarm."""
    text = record.text
    return Alarm(
        event=event,
        key=record.key,
        urgency=record.urgency,
        title=clean(text.get("title", record.key), _MAX_TITLE_CHARS),
        text=clean(text.get("text", ""), _MAX_TEXT_CHARS),
        todo="" if event == "ended" else clean(text.get("todo", ""), _MAX_TITLE_CHARS),
        link=f"{base_url}{text.get('href', '/admin/alarms')}",
        since=record.since,
        ended_at=record.calm_since if event == "ended" else None,
        gateway=gateway,
    )


def make_test(base_url: str, gateway: str, now: float) -> Alarm:
    """Return the message of `gateway alarms test`."""
    return Alarm(
        event="test",
        key="test",
        urgency="notice",
        title="This is a test",
        text="This channel receives the alarms of this gateway.",
        todo="",
        link=f"{base_url}/admin/alarms",
        since=now,
        gateway=gateway,
    )


def clean(text: str, most: int) -> str:
    """Return a text on one line without control characters, cut to `most` characters."""
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return words if len(words) <= most else f"{words[: most - 1]}…"


@attrs.frozen(kw_only=True)
class Letter:
    """The text of one message or several."""

    title: str
    body: str


def write_letter(alarms: Sequence[Alarm]) -> Letter:
    """Return one letter about messages of one gateway, without working mentions."""
    letter = _write_letter(alarms)
    return Letter(title=_mute_mentions(letter.title), body=_mute_mentions(letter.body))


def _mute_mentions(text: str) -> str:
    # A zero-width space is invisible.
    return _MENTION.sub("\\g<0>\u200b", text)


def _write_letter(alarms: Sequence[Alarm]) -> Letter:
    if len(alarms) == 1:
        return Letter(title=_write_title(alarms[0]), body=_write_body(alarms[0]))
    urgent = sum(one.urgency == "urgent" and one.event != "ended" for one in alarms)
    title = f"{alarms[0].gateway}: {len(alarms)} messages"
    title += f", {urgent} urgent" if urgent else ""
    bodies = [f"{_write_title(one)}\n{_write_body(one)}" for one in alarms]
    return Letter(title=title, body="\n\n".join(bodies))


def _write_title(alarm: Alarm) -> str:
    if alarm.event == "digest":
        return f"{alarm.gateway}: {alarm.title}"
    word = _WORDS[alarm.event] or f"{_URGENCY_WORDS[alarm.urgency]}: "
    return f"{alarm.gateway}: {word}{alarm.title}"


def _write_body(alarm: Alarm) -> str:
    lines = [alarm.text] if alarm.text else []
    if alarm.event not in ("digest", "test"):
        lines.append(f"Since {write_time(alarm.since)}.")
    if alarm.ended_at is not None:
        lines.append(f"Over since {write_time(alarm.ended_at)}.")
    if alarm.todo:
        lines.append(f"What to do: {alarm.todo}")
    return "\n".join([*lines, alarm.link])


def write_time(at: float) -> str:
    """Return a time in UTC, to the minute."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
