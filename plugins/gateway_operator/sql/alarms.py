"""Open and past alarms."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from gateway.contracts.parts import Alarm
from gateway.store.sql import Connection, locked
from gateway_operator.alarms.records import AlarmRecord
from gateway_operator.sql import alarm_messages

# Past alarms are kept for half a year.
RETENTION_S = 180 * 86_400.0
# All conditions but a missing first copy raise their alarm within this time.
_SOON_S = 300.0
_COLUMNS = tuple(field.name for field in attrs.fields(AlarmRecord) if field.name != "id")


@attrs.frozen(kw_only=True)
class Step:
    """The change of one alarm: its row, and the messages to send.

    A row that was never raised is deleted once its condition is gone.
    """

    record: AlarmRecord
    alarms: tuple[Alarm, ...] = ()
    is_deleted: bool = False


def open_alarms(db: Connection) -> list[AlarmRecord]:
    """Return the alarms that have not ended, raised or not."""
    return _select(db, "WHERE ended_at IS NULL ORDER BY id")


def find_open(db: Connection, condition: str, subject: str) -> AlarmRecord | None:
    """Return the open alarm of a condition and a subject, or None."""
    found = _select(
        db, "WHERE ended_at IS NULL AND condition = ? AND subject = ?", condition, subject
    )
    return found[0] if found else None


def has_unsent(db: Connection, now: float) -> bool:
    """Whether a message waits, or a condition of the last minutes may still send one.

    It has not held long enough to raise its alarm, or to raise it again at a new urgency.
    """
    row = db.execute(
        """SELECT EXISTS (SELECT 1 FROM alarm_messages WHERE due_at IS NOT NULL)
               OR EXISTS (SELECT 1 FROM alarms
                   WHERE ended_at IS NULL AND urgent_since > ? AND (raised_at IS NULL
                       OR told_urgency IS NULL OR told_urgency <> urgency))""",
        (now - _SOON_S,),
    ).fetchone()
    return bool(row[0])


def past_alarms(db: Connection, limit: int) -> list[AlarmRecord]:
    """Return ended alarms, the newest end first."""
    return _select(db, "WHERE ended_at IS NOT NULL ORDER BY ended_at DESC, id DESC LIMIT ?", limit)


def mutes(db: Connection, now: float) -> list[AlarmRecord]:
    """Return ended alarms whose mute has not expired: it applies to the next such alarm too."""
    return _select(db, "WHERE ended_at IS NOT NULL AND muted_until > ? ORDER BY id", now)


# Guards the open alarms and their messages.
@locked("alarms")
def apply_round(
    db: Connection,
    judge: Callable[[Sequence[AlarmRecord], Sequence[AlarmRecord]], Sequence[Step]],
    channels: Sequence[str],
    now: float,
) -> list[Step]:
    """Evaluate the open alarms, write the changes, and queue the messages; return the steps.

    `judge` runs inside the write, so that a mute by another process is never lost.
    """
    steps = list(judge(open_alarms(db), mutes(db, now)))
    for step in steps:
        if step.is_deleted:
            db.execute("DELETE FROM alarms WHERE id = ?", (step.record.id,))
        else:
            save(db, step.record)
        for alarm in step.alarms:
            alarm_messages.add(db, alarm, channels, now)
    return steps


def save(db: Connection, record: AlarmRecord) -> None:
    """Insert or update the row of an alarm."""
    values = tuple(_stored(getattr(record, name)) for name in _COLUMNS)
    if record.id is None:
        places = ", ".join("?" * len(_COLUMNS))
        db.execute(f"INSERT INTO alarms ({', '.join(_COLUMNS)}) VALUES ({places})", values)  # noqa: S608 - constants
        return
    places = ", ".join(f"{name} = ?" for name in _COLUMNS)
    db.execute(f"UPDATE alarms SET {places} WHERE id = ?", (*values, record.id))  # noqa: S608 - constants


def set_mute(db: Connection, record_id: int, until: float | None, reason: str) -> None:
    """Mute an alarm until a time; None unmutes it."""
    db.execute(
        "UPDATE alarms SET muted_until = ?, mute_reason = ? WHERE id = ?",
        (until, reason if until is not None else None, record_id),
    )


def delete_old(db: Connection, now: float) -> None:
    """Delete alarms and messages older than half a year."""
    db.execute("DELETE FROM alarms WHERE ended_at < ?", (now - RETENTION_S,))
    alarm_messages.delete_old(db, now - RETENTION_S)


def _select(db: Connection, where: str, *values: Any) -> list[AlarmRecord]:
    rows: Iterable[Sequence[Any]] = db.execute(
        f"SELECT {', '.join(_COLUMNS)}, id FROM alarms {where}",  # noqa: S608 - constants
        values,
    )
    return [_record_of(row) for row in rows]


def _record_of(row: Sequence[Any]) -> AlarmRecord:
    values = dict(zip((*_COLUMNS, "id"), row, strict=True))
    return AlarmRecord(**values | {"text": json.loads(values["text"])})


def _stored(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict) else value
