"""Evaluates conditions every 30 seconds, raises and ends alarms, and sends their messages.

It delays no request: it reads through the connection for sums, and carriers run in their own tasks.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence

import attrs
import structlog

from gateway.contracts import Clock
from gateway.contracts.parts import Alarm
from gateway.store import SqlStore
from gateway_operator.alarms.heartbeat import Heartbeat
from gateway_operator.alarms.records import AlarmRecord
from gateway_operator.alarms.rounds import Round
from gateway_operator.alarms.sender import AlarmSender
from gateway_operator.alarms.unwritten import UnwrittenAlarms
from gateway_operator.desk.conditions import Condition
from gateway_operator.sql import alarm_messages, alarms
from gateway_operator.sql.alarms import Step

EVERY_S = 30.0
# Seconds without an evaluation after which the heartbeat stops.
BLIND_S = 300.0
# These stop the heartbeat at once, before their alarm is raised.
_STORAGE_CHECKS = ("disk", "database")
# Interval for deleting old rows.
_TIDY_S = 86_400.0
_log = structlog.get_logger()


@attrs.define(kw_only=True)
class AlarmWatch:
    """The alarms of one running gateway."""

    store: SqlStore
    # The conditions that hold; the daily digest, or None if it is not due.
    find_conditions: Callable[[], Awaitable[Sequence[Condition]]]
    write_digest: Callable[[float | None], Awaitable[Alarm | None]]
    # Raises if the database takes no writes.
    try_write: Callable[[], Awaitable[None]]
    # Removes secrets from a text.
    clean: Callable[[str], str]
    sender: AlarmSender
    heartbeat: Heartbeat | None
    now: Clock
    base_url: str
    gateway: str
    every_s: float = EVERY_S
    # Conditions of which the end may not be known, as `Round.uncertain`.
    find_uncertain: Callable[[], Mapping[str, float]] = attrs.field(factory=lambda: dict)
    # Whether this node leads. Others watch only if the database takes no writes.
    is_mine: Callable[[], bool] = attrs.field(default=lambda: True)
    _beating: asyncio.Task[None] | None = attrs.field(default=None, init=False)
    _evaluated_at: float | None = attrs.field(default=None, init=False)
    _tidied_at: float = attrs.field(default=0.0, init=False)
    _is_urgent: bool = attrs.field(default=False, init=False)
    _is_storage_ok: bool = attrs.field(default=True, init=False)
    _is_writable: bool = attrs.field(default=True, init=False)
    # As of the last read.
    _stored: Sequence[AlarmRecord] = attrs.field(default=(), init=False)
    _unwritten: UnwrittenAlarms = attrs.field(factory=UnwrittenAlarms, init=False)

    async def run(self) -> None:
        """Evaluate until cancelled. The first pause leaves a starting gateway time."""
        self._resume_monitor()
        while True:
            await asyncio.sleep(self.every_s)
            await self.step()

    async def step(self) -> None:
        """Evaluate once, and start sending due messages.

        Without database writes there is no leader, so then every node does both.
        """
        await self._find_writable()
        if self._is_writable and not self.is_mine():
            self._unwritten.clear()
            return
        for work in (self._evaluate, self._add_digest, self._tidy, self.sender.start_due):
            try:
                await work()
            except Exception:  # noqa: BLE001 - the edge of a background task: it goes on
                _log.exception("alarms.failed", work=work.__name__.lstrip("_"))
        self._start_beat()

    @property
    def holds_heartbeat(self) -> bool:
        """Whether an urgent alarm holds the heartbeat back."""
        return self._is_urgent

    async def find_pending(self) -> list[str]:
        """Return `alarms` until conditions were checked, and alarms are raised and sent."""
        if not self.is_mine():
            return []
        is_pending = self._evaluated_at is None or bool(self.sender.unwritten)
        if is_pending or await self.store.sum(alarms.has_unsent, self.now()):
            return ["alarms"]
        return []

    async def sleep(self) -> None:
        """Send no more heartbeats, and report to their monitor that the gateway sleeps.

        A silence that is an alarm goes on. The monitor is the leader's to pause.
        """
        beat, self.heartbeat = self.heartbeat, None
        if self._beating is not None:
            await asyncio.gather(self._beating, return_exceptions=True)
        if beat is None or not self.is_mine():
            return
        if self._is_silent():
            _log.warning("heartbeat.not_paused", problem="Its silence is an alarm.")
        else:
            await beat.pause()

    async def close(self) -> None:
        """Cancel running work; messages stay in the database."""
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)
        await self.sender.close()

    async def _evaluate(self) -> None:
        conditions = [self._clean(one) for one in await self.find_conditions()]
        now, channels = self.now(), self.sender.channels
        one_round = Round(
            conditions=conditions,
            now=now,
            base_url=self.base_url,
            gateway=self.gateway,
            has_channels=bool(channels),
            uncertain=self.find_uncertain(),
        )
        for step in await self._apply(one_round):
            _log_step(step, now)
        await self._read_stored()
        self._is_urgent = self._unwritten.is_urgent(self._stored, now)
        self._is_storage_ok = not any(
            one.condition == "check" and one.subject in _STORAGE_CHECKS for one in conditions
        )
        self._evaluated_at = now

    async def _find_writable(self) -> None:
        try:
            await self.try_write()
        except Exception as error:  # noqa: BLE001 - whatever it is, alarms are sent from memory
            self._note_unwritable(error)
        else:
            self._is_writable = True

    def _note_unwritable(self, error: Exception) -> None:
        if self._is_writable:
            _log.error("alarms.from_memory", error=str(error) or type(error).__name__)
        self._is_writable = False

    async def _apply(self, one_round: Round) -> list[Step]:
        """Write the alarms' changes, or keep them in memory; return them."""
        judge = functools.partial(self._unwritten.judge, one_round)
        channels, now = self.sender.channels, one_round.now
        if self._is_writable:
            try:
                steps = await self.store.write(alarms.apply_round, judge, channels, now)
            except Exception as error:  # noqa: BLE001 - as above
                self._note_unwritable(error)
            else:
                self._unwritten.clear()
                return steps
        await self._read_stored()
        steps = judge(self._stored)
        self._unwritten.keep(steps)
        self.sender.queue_unwritten([alarm for step in steps for alarm in step.alarms])
        return steps

    async def _read_stored(self) -> None:
        """Read the open alarms; keep those of the last read if that fails."""
        try:
            self._stored = await self.store.sum(alarms.open_alarms)
        except Exception:
            if self._is_writable:
                raise

    def _clean(self, condition: Condition) -> Condition:
        """Remove secrets, which a vendor's message may quote."""
        return attrs.evolve(
            condition, title=self.clean(condition.title), text=self.clean(condition.text)
        )

    async def _add_digest(self) -> None:
        if not self.sender.channels or not self._is_writable:
            return
        last = await self.store.sum(alarm_messages.newest_at, "digest")
        digest = await self.write_digest(last)
        if digest is not None:
            digest = attrs.evolve(digest, text=self.clean(digest.text))
            await self.store.write(alarm_messages.add, digest, self.sender.channels, self.now())

    async def _tidy(self) -> None:
        now = self.now()
        if self._is_writable and now - self._tidied_at >= _TIDY_S:
            self._tidied_at = now
            await self.store.write(alarms.delete_old, now)

    def _start_beat(self) -> None:
        """Send a heartbeat if one is due and its silence is no alarm."""
        beat = self.heartbeat
        is_beating = self._beating is not None and not self._beating.done()
        if beat is None or self._is_silent() or is_beating or not beat.is_due:
            return
        self._beating = asyncio.create_task(beat.beat(), name="heartbeat")

    def _is_silent(self) -> bool:
        """Whether an urgent alarm is on, the conditions are unknown, or the storage fails."""
        is_blind = self._evaluated_at is None or self.now() - self._evaluated_at > BLIND_S
        is_stored = self._is_writable and self._is_storage_ok
        return is_blind or self._is_urgent or not is_stored

    def _resume_monitor(self) -> None:
        """Send one heartbeat, after which silence is an alarm again: a sleep may have paused it."""
        beat = self.heartbeat
        if beat is not None and beat.pause_address is not None and self.is_mine():
            self._beating = asyncio.create_task(beat.beat(), name="heartbeat")


def _log_step(step: Step, now: float) -> None:
    record = step.record
    about = {"alarm": record.key, "urgency": record.urgency, "title": record.text.get("title")}
    if record.ended_at == now:
        _log.info("alarm.ended", **about)
    elif record.raised_at == now or any(one.event == "raised" for one in step.alarms):
        _log.warning("alarm.raised", **about)
