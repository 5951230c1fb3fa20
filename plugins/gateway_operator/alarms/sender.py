"""Sends due messages, each carrier in its own task, so that none delays another.

Messages are queued in the database, so they survive a restart. After a crash between sending and
writing it down, a message is sent twice. While the database takes no writes, new messages and
results wait in memory.
"""

import asyncio
import contextlib
import secrets
from collections import deque
from collections.abc import Mapping, Sequence

import attrs
import structlog

from gateway.contracts import Clock
from gateway.contracts.parts import Alarm
from gateway.errors import GatewayError
from gateway.store import SqlStore
from gateway_operator.alarms.carriers import LATE, Carrier, Outcomes
from gateway_operator.alarms.records import AlarmMessage
from gateway_operator.sql import alarm_messages

# Before each retry; the last pause repeats until a message is a day old.
_PAUSES_S = (30.0, 60.0, 300.0, 900.0, 3_600.0)
_GIVEN_UP_S = 86_400.0
# Against a faulty carrier; carriers have limits of their own.
_LIMIT_S = 300.0
# Per channel and send, and read per round.
_BATCH = 20
_MAX_DUE = 500
# After this many messages within an hour, a channel gets one every `_SLOW_S` seconds.
_HOURLY = 20
_SLOW_S = 300.0
_HOUR_S = 3_600.0
# Makes ids of unstored messages unique across nodes and processes.
_ID_BITS = 53
_log = structlog.get_logger()


@attrs.define(kw_only=True)
class AlarmSender:
    """Reads the queue of messages and hands them to carriers."""

    store: SqlStore
    carriers: Sequence[Carrier]
    now: Clock
    limit_s: float = _LIMIT_S
    _running: dict[int, asyncio.Task[None]] = attrs.field(factory=dict, init=False)
    # By channel: when to use it again, and when it was used.
    _paused_until: dict[str, float] = attrs.field(factory=dict, init=False)
    _sent_at: dict[str, deque[float]] = attrs.field(factory=dict, init=False)
    # Messages only in memory, by negative id.
    _unwritten: dict[int, AlarmMessage] = attrs.field(factory=dict, init=False)
    # When stored messages were sent, until that can be written.
    _unrecorded: dict[int, float] = attrs.field(factory=dict, init=False)

    @property
    def channels(self) -> list[str]:
        """The names of all channels."""
        return [name for carrier in self.carriers for name in carrier.channels]

    @property
    def unwritten(self) -> int:
        """How many messages are only in memory."""
        return len(self._unwritten)

    async def start_due(self) -> None:
        """Start sending due messages by each idle carrier, without waiting."""
        due = await self._find_due()
        for place, carrier in enumerate(self.carriers):
            if place in self._running:
                continue
            batches = {name: self._take(name, due) for name in carrier.channels}
            batches = {name: messages for name, messages in batches.items() if messages}
            if batches:
                self._start(place, carrier, batches)
        await self._give_up_unknown(due)

    def queue_unwritten(self, alarms: Sequence[Alarm]) -> None:
        """Queue messages in memory that the database cannot store."""
        now = self.now()
        for alarm in alarms:
            for channel in self.channels:
                number = -secrets.randbits(_ID_BITS) - 1
                self._unwritten[number] = AlarmMessage(
                    id=number, channel=channel, alarm=alarm, created_at=now, due_at=now
                )

    async def _find_due(self) -> list[AlarmMessage]:
        """Return due messages, stored or not, without those that were already sent."""
        now = self.now()
        kept = [one for one in self._unwritten.values() if (one.due_at or now) <= now]
        try:
            await self._record_late()
            due = await self.store.sum(alarm_messages.due, now, _MAX_DUE)
        except Exception:
            if not kept:
                raise
            return kept
        return [*kept, *(one for one in due if one.id not in self._unrecorded)]

    async def _record_late(self) -> None:
        """Write down messages that were sent while the database took no writes."""
        with contextlib.suppress(GatewayError):
            for number, at in list(self._unrecorded.items()):
                await self.store.write(alarm_messages.note_sent, [number], at)
                self._unrecorded.pop(number, None)

    async def finish(self) -> None:
        """Wait for all running carriers."""
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def close(self) -> None:
        """Cancel running carriers; their messages are sent after the next start."""
        for task in self._running.values():
            task.cancel()
        await self.finish()
        for carrier in self.carriers:
            carrier.close()

    def _start(
        self, place: int, carrier: Carrier, batches: Mapping[str, Sequence[AlarmMessage]]
    ) -> None:
        task = asyncio.create_task(self._carry(carrier, batches), name="alarm-carrier")
        self._running[place] = task
        task.add_done_callback(lambda _: self._running.pop(place, None))

    def _take(self, channel: str, due: Sequence[AlarmMessage]) -> list[AlarmMessage]:
        now = self.now()
        sent_at = self._sent_at.setdefault(channel, deque(maxlen=_HOURLY))
        if sent_at and sent_at[-1] > now:
            # The clock was set back: do not stay silent until it catches up.
            sent_at.clear()
        if self._paused_until.get(channel, 0.0) > now + _PAUSES_S[-1]:
            del self._paused_until[channel]
        is_throttled = len(sent_at) == _HOURLY and now - sent_at[0] < _HOUR_S
        if now < self._paused_until.get(channel, 0.0) or (
            is_throttled and now - sent_at[-1] < _SLOW_S
        ):
            return []
        return [one for one in due if one.channel == channel][:_BATCH]

    async def _give_up_unknown(self, due: Sequence[AlarmMessage]) -> None:
        """Give up messages of channels that are no longer in the settings."""
        lost = [one.id for one in due if one.channel not in self.channels]
        if lost:
            problem = "This channel is no longer in the settings."
            await self.store.write(alarm_messages.note_failed, lost, problem, None)

    async def _carry(self, carrier: Carrier, batches: Mapping[str, Sequence[AlarmMessage]]) -> None:
        try:
            outcomes = await self._ask(carrier, batches)
            for channel, messages in batches.items():
                await self._note(channel, messages, outcomes)
        except Exception:  # noqa: BLE001 - the edge of a background task; the next round tries again
            _log.exception("alarm.not_written")

    async def _ask(
        self, carrier: Carrier, batches: Mapping[str, Sequence[AlarmMessage]]
    ) -> Outcomes:
        try:
            async with asyncio.timeout(self.limit_s):
                return await carrier.carry(batches)
        except TimeoutError:
            problem = LATE
        except Exception as error:  # noqa: BLE001 - a carrier's edge: nothing was sent
            problem = f"It failed: {type(error).__name__}."
        return {one.id: problem for messages in batches.values() for one in messages}

    async def _note(
        self, channel: str, messages: Sequence[AlarmMessage], outcomes: Outcomes
    ) -> None:
        now = self.now()
        sent = [one for one in messages if one.id in outcomes and outcomes[one.id] is None]
        failed = [one for one in messages if outcomes.get(one.id) is not None]
        if sent:
            self._sent_at[channel].append(now)
            self._paused_until.pop(channel, None)
            _log.info("alarm.sent", channel=channel, alarms=[one.alarm.key for one in sent])
            await self._note_sent(sent, now)
        for one in failed:
            await self._note_failed(channel, one, str(outcomes[one.id]), now)

    async def _note_sent(self, messages: Sequence[AlarmMessage], now: float) -> None:
        for one in messages:
            if self._unwritten.pop(one.id, None) is None:
                self._unrecorded[one.id] = now
        await self._record_late()

    async def _note_failed(
        self, channel: str, message: AlarmMessage, problem: str, now: float
    ) -> None:
        pause_s = _PAUSES_S[min(message.failures, len(_PAUSES_S) - 1)]
        is_given_up = now + pause_s - message.created_at > _GIVEN_UP_S
        due_at = None if is_given_up else now + pause_s
        self._paused_until[channel] = now + pause_s
        if message.id in self._unwritten:
            self._keep_failed(message, problem, due_at)
        else:
            await self.store.write(alarm_messages.note_failed, [message.id], problem, due_at)
        _log.warning(
            "alarm.not_sent",
            channel=channel,
            alarm=message.alarm.key,
            problem=problem,
            failures=message.failures + 1,
            given_up=is_given_up,
        )

    def _keep_failed(self, message: AlarmMessage, problem: str, due_at: float | None) -> None:
        del self._unwritten[message.id]
        if due_at is not None:
            self._unwritten[message.id] = attrs.evolve(
                message, problem=problem, due_at=due_at, failures=message.failures + 1
            )
