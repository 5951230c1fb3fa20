"""Looks every 30 seconds at what holds, raises and ends alarms, and has them told.

No request waits for it: numbers come from the connection for sums, and what is told is told in
tasks of its own.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import attrs
import structlog

from gateway.admin.alarms.heartbeat import Heartbeat
from gateway.admin.alarms.rounds import Round
from gateway.admin.alarms.teller import Teller
from gateway.admin.conditions import Condition
from gateway.contracts import Clock
from gateway.contracts.alarms import Alarm
from gateway.contracts.operators import OperatorRecords
from gateway.store.operators import alarm_messages, alarms
from gateway.store.operators.alarms import Step

EVERY_S = 30.0
# The heartbeat is silent when the numbers could not be read for so long.
BLIND_S = 300.0
# Old rows are deleted once in so many seconds.
_TIDY_S = 86_400.0
_log = structlog.get_logger()


@attrs.define(kw_only=True)
class AlarmWatch:
    """The alarms of one running gateway."""

    operators: OperatorRecords
    # What holds now, and the day's digest; the digest is None where it is not due.
    find_conditions: Callable[[], Awaitable[Sequence[Condition]]]
    write_digest: Callable[[float | None], Awaitable[Alarm | None]]
    # Takes secrets out of what is told.
    clean: Callable[[str], str]
    teller: Teller
    # None: nothing is asked.
    heartbeat: Heartbeat | None
    now: Clock
    base_url: str
    gateway: str
    every_s: float = EVERY_S
    # While it says no, another node watches.
    is_mine: Callable[[], bool] = attrs.field(default=lambda: True)
    _beating: asyncio.Task[None] | None = attrs.field(default=None, init=False)
    _looked_at: float | None = attrs.field(default=None, init=False)
    _tidied_at: float = attrs.field(default=0.0, init=False)
    _is_urgent: bool = attrs.field(default=False, init=False)

    async def run(self) -> None:
        """Look again and again, whatever a look raises; a start is given time to begin."""
        while True:
            await asyncio.sleep(self.every_s)
            if self.is_mine():
                await self.step()

    async def step(self) -> None:
        """Look once, and begin to tell what is due."""
        for work in (self._look, self._add_digest, self._tidy, self.teller.start_due):
            try:
                await work()
            except Exception:  # noqa: BLE001 - the edge of a background task: it goes on
                _log.exception("alarms.failed", work=work.__name__.lstrip("_"))
        self._start_beat()

    async def close(self) -> None:
        """Put down what has begun; messages wait in the database."""
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)
        await self.teller.close()

    async def _look(self) -> None:
        conditions = [self._clean(one) for one in await self.find_conditions()]
        now, channels = self.now(), self.teller.channels
        one_round = Round(
            conditions=conditions,
            now=now,
            base_url=self.base_url,
            gateway=self.gateway,
            has_channels=bool(channels),
        )
        steps = await self.operators.write(alarms.play_round, one_round.judge, channels, now)
        for step in steps:
            _log_step(step, now)
        held = await self.operators.sum(alarms.open_alarms)
        self._is_urgent = any(one.urgency == "urgent" and one.is_on(now) for one in held)
        self._looked_at = now

    def _clean(self, condition: Condition) -> Condition:
        """Return a condition without secrets: a vendor's words may quote one."""
        return attrs.evolve(
            condition, title=self.clean(condition.title), text=self.clean(condition.text)
        )

    async def _add_digest(self) -> None:
        if not self.teller.channels:
            return
        last = await self.operators.sum(alarm_messages.newest_at, "digest")
        digest = await self.write_digest(last)
        if digest is not None:
            digest = attrs.evolve(digest, text=self.clean(digest.text))
            await self.operators.write(alarm_messages.add, digest, self.teller.channels, self.now())

    async def _tidy(self) -> None:
        now = self.now()
        if now - self._tidied_at >= _TIDY_S:
            self._tidied_at = now
            await self.operators.write(alarms.forget_old, now)

    def _start_beat(self) -> None:
        """Ask the heartbeat's address, unless something urgent is on or nothing is known."""
        beat, now = self.heartbeat, self.now()
        is_blind = self._looked_at is None or now - self._looked_at > BLIND_S
        is_beating = self._beating is not None and not self._beating.done()
        if beat is None or is_blind or self._is_urgent or is_beating or not beat.is_due:
            return
        self._beating = asyncio.create_task(beat.beat(), name="heartbeat")


def _log_step(step: Step, now: float) -> None:
    """Log an alarm that was raised or has ended in this round."""
    record = step.record
    about = {"alarm": record.key, "urgency": record.urgency, "title": record.text.get("title")}
    if record.ended_at == now:
        _log.info("alarm.ended", **about)
    elif record.raised_at == now or any(one.event == "raised" for one in step.tells):
        _log.warning("alarm.raised", **about)
