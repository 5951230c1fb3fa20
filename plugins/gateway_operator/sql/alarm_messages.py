"""The queue of alarm messages, a row per channel."""

import json
from collections.abc import Sequence
from typing import Any

import attrs

from gateway.contracts.parts import Alarm
from gateway.store.sql import Connection, dialect_of
from gateway_operator.alarms.records import AlarmMessage

_COLUMNS = "id, channel, text, created_at, due_at, failures, problem, told_at"


def add(db: Connection, alarm: Alarm, channels: Sequence[str], now: float) -> None:
    """Queue a message for each channel, due now."""
    text = json.dumps(attrs.asdict(alarm))
    for channel in channels:
        db.execute(
            """INSERT INTO alarm_messages (channel, event, text, created_at, due_at)
               VALUES (?, ?, ?, ?, ?)""",
            (channel, alarm.event, text, now, now),
        )


def due(db: Connection, now: float, limit: int) -> list[AlarmMessage]:
    """Return due messages, oldest first.

    After the clock was set back, messages from the future are due too.
    """
    return _select(
        db,
        f"""{dialect_of(db).indexed_by("alarm_messages_due")}
            WHERE due_at IS NOT NULL AND (due_at <= ? OR created_at > ?) ORDER BY id LIMIT ?""",
        now,
        now,
        limit,
    )


def unsent(db: Connection, since: float, limit: int) -> list[AlarmMessage]:
    """Return messages since a time that a channel did not accept, newest first."""
    return _select(
        db,
        """WHERE told_at IS NULL AND problem IS NOT NULL AND created_at >= ?
           ORDER BY id DESC LIMIT ?""",
        since,
        limit,
    )


def note_sent(db: Connection, ids: Sequence[int], now: float) -> None:
    """Mark messages as sent."""
    for number in ids:
        db.execute(
            "UPDATE alarm_messages SET told_at = ?, due_at = NULL, problem = NULL WHERE id = ?",
            (now, number),
        )


def note_failed(db: Connection, ids: Sequence[int], problem: str, due_at: float | None) -> None:
    """Record a failed attempt; `due_at` None gives the messages up."""
    for number in ids:
        db.execute(
            """UPDATE alarm_messages SET due_at = ?, problem = ?, failures = failures + 1
               WHERE id = ?""",
            (due_at, problem, number),
        )


def newest_at(db: Connection, event: str) -> float | None:
    """Return when the newest message of an event was queued."""
    row = db.execute(
        "SELECT max(created_at) FROM alarm_messages WHERE event = ?", (event,)
    ).fetchone()
    return None if row[0] is None else float(row[0])


def delete_old(db: Connection, before: float) -> None:
    """Delete messages queued before a time."""
    db.execute("DELETE FROM alarm_messages WHERE created_at < ?", (before,))


def _select(db: Connection, where: str, *values: Any) -> list[AlarmMessage]:
    rows = db.execute(f"SELECT {_COLUMNS} FROM alarm_messages {where}", values)  # noqa: S608 - constants
    return [_message_of(row) for row in rows]


def _message_of(row: Sequence[Any]) -> AlarmMessage:
    number, channel, text, created_at, due_at, failures, problem, told_at = row
    return AlarmMessage(
        id=number,
        channel=channel,
        alarm=Alarm(**json.loads(text)),
        created_at=created_at,
        due_at=due_at,
        failures=failures,
        problem=problem,
        told_at=told_at,
    )
