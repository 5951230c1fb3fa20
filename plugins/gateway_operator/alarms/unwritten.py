"""Alarms while the database takes no writes: evaluated, kept and sent from memory.

The first round with writes stores them. Each node that cannot write sends its own messages: a
duplicate is better than none.
"""

from collections.abc import Iterable, Sequence

import attrs

from gateway_operator.alarms.records import AlarmRecord
from gateway_operator.alarms.rounds import Round
from gateway_operator.sql.alarms import Step


@attrs.define
class UnwrittenAlarms:
    """Changes of alarms since the last successful write."""

    _records: dict[tuple[str, str], AlarmRecord] = attrs.field(factory=dict, init=False)

    def judge(
        self, one_round: Round, stored: Sequence[AlarmRecord], mutes: Iterable[AlarmRecord] = ()
    ) -> list[Step]:
        """Return the round's steps; records kept here override stored ones.

        Each record kept here is in a step, so that it gets written.
        """
        known = self._merge(stored)
        steps = one_round.judge([one for one in known.values() if one.ended_at is None], mutes)
        unchanged = self._records.keys() - {_name_of(step.record) for step in steps}
        return [*steps, *(Step(record=known[name]) for name in unchanged)]

    def keep(self, steps: Iterable[Step]) -> None:
        """Keep steps that could not be written."""
        for step in steps:
            if step.is_deleted:
                # If it is stored, it is evaluated again.
                self._records.pop(_name_of(step.record), None)
            else:
                self._records[_name_of(step.record)] = step.record

    def is_urgent(self, stored: Sequence[AlarmRecord], now: float) -> bool:
        """Whether an urgent alarm is raised and not muted."""
        known = self._merge(stored).values()
        return any(one.urgency == "urgent" and one.is_on(now) for one in known)

    def clear(self) -> None:
        """Forget everything: this or another node has written it."""
        self._records.clear()

    def _merge(self, stored: Sequence[AlarmRecord]) -> dict[tuple[str, str], AlarmRecord]:
        """Return the stored alarms by name, overridden by those kept here."""
        found = {_name_of(one): one for one in stored}
        for name, kept in self._records.items():
            row = found.get(name)
            found[name] = kept if row is None else attrs.evolve(kept, id=row.id)
        return found


def _name_of(record: AlarmRecord) -> tuple[str, str]:
    return record.condition, record.subject
