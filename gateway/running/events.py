"""Hands events of the outbox to the plugins that read them."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence

import attrs
import structlog

from gateway.contracts import Clock
from gateway.contracts.parts import Condition, EventReader, Part
from gateway.errors import DiskFull, StoreUnavailable
from gateway.store.events import SqlEvents

_MANY = 1_000
_LONG_S = 3_600.0
_FORGET_EVERY_S = 3_600.0
_REGISTER_EVERY_S = 3_600.0
# An event that its reader refuses waits for this long, so that it holds up no other.
_SET_ASIDE_S = 300.0
_MAX_BACKOFF_S = 300.0
_log = structlog.get_logger()


@attrs.define(kw_only=True, eq=False, repr=False)
class EventHandover:
    """Hands events over when a task ends, and polls for those of other processes."""

    events: SqlEvents
    # All parts of the gateway; read when it starts.
    parts: Sequence[Part]
    # The leader takes events at once. Other nodes only poll, in case it lacks the plugin.
    leads: Callable[[], bool]
    now: Clock = time.time
    poll_s: float = 5.0
    # The shortest time between two rounds. Each task's end asks for one, and most have no events.
    min_interval_s: float = 0.1
    _readers: dict[str, EventReader] = attrs.field(factory=dict, init=False)
    # One for each reader, so that one which blocks holds up no other.
    _wakes: dict[str, asyncio.Event] = attrs.field(factory=dict, init=False)
    _loops: list[asyncio.Task[None]] = attrs.field(factory=list, init=False)
    # Of failed readers: the pause, and the loop time of the next attempt.
    _backoff: dict[str, tuple[float, float]] = attrs.field(factory=dict, init=False)
    # The loop's time of each reader's last round, and of the last registration.
    _handed_over_at: dict[str, float] = attrs.field(factory=dict, init=False)
    _registered_at: float = attrs.field(default=0.0, init=False)

    def make_part(self) -> Part:
        """Return the gateway's part that hands events over."""
        return Part(
            name="events",
            start=self._register,
            begin=self._begin,
            work=self._forget_absent,
            every_s=_FORGET_EVERY_S,
            only_leader=True,
            close=self._close,
            conditions=self._find_conditions,
            pending=self._find_pending,
        )

    def wake(self) -> None:
        """Request a round. Returns at once."""
        for wake in self._wakes.values():
            wake.set()

    async def hand_over(self) -> None:
        """Hand over all waiting events. If a reader fails, log its error; its events wait."""
        await asyncio.gather(*(self._start_round(*each) for each in self._readers.items()))

    async def _start_round(self, name: str, reader: EventReader) -> None:
        now = asyncio.get_running_loop().time()
        self._handed_over_at[name] = now
        if now >= self._backoff.get(name, (0.0, 0.0))[1]:
            await self._hand_over_to(name, reader)

    async def _register(self) -> None:
        self._readers = {part.name: part.events for part in self.parts if part.events is not None}
        await self.events.set_readers(self._readers, now=self.now())
        self._registered_at = asyncio.get_running_loop().time()

    async def _begin(self) -> None:
        for name, reader in self._readers.items():
            self._wakes[name] = asyncio.Event()
            repeated = self._repeat(name, reader)
            self._loops.append(asyncio.create_task(repeated, name=f"events of {name}"))

    async def _close(self) -> None:
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)

    async def _repeat(self, name: str, reader: EventReader) -> None:
        wake = self._wakes[name]
        await self._start_round(name, reader)
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.poll_s):
                    await wake.wait()
            wake.clear()
            # The leader may lack the plugin, so other nodes poll, however often they are woken.
            since_last_s = asyncio.get_running_loop().time() - self._handed_over_at[name]
            if self.leads() or since_last_s >= self.poll_s:
                await self._start_round(name, reader)
            await self._register_again()
            await asyncio.sleep(self.min_interval_s)

    async def _register_again(self) -> None:
        """Keep this node's readers, which are deleted after a long silence."""
        now = asyncio.get_running_loop().time()
        if now - self._registered_at < _REGISTER_EVERY_S:
            return
        # After a failure the next hour is early enough.
        self._registered_at = now
        try:
            await self._register()
        except Exception:  # noqa: BLE001 - the loop must go on
            _log.exception("events.not_registered")

    async def _hand_over_to(self, name: str, reader: EventReader) -> None:
        now = asyncio.get_running_loop().time()
        try:
            while await self._take(name, reader):
                pass
        except (StoreUnavailable, DiskFull) as error:
            self._backoff[name] = (self.poll_s / 2, now + self.poll_s)
            _log.warning("events.no_database", reader=name, reason=str(error))
        except Exception:  # noqa: BLE001 - a plugin may raise anything
            pause_s = min(2 * self._backoff.get(name, (self.poll_s / 2, 0.0))[0], _MAX_BACKOFF_S)
            self._backoff[name] = (pause_s, now + pause_s)
            _log.exception("events.not_taken", reader=name, pause_s=pause_s)
        else:
            self._backoff.pop(name, None)

    async def _take(self, name: str, reader: EventReader) -> bool:
        """Hand over one batch; return whether there was one.

        After a failure, events are tried one by one, and the one that fails is set aside.
        """
        if not await self.events.waits(name, now=self.now()):
            return False
        is_single = name in self._backoff
        try:
            taken = await self.events.take(name, reader.take, now=self.now(), is_single=is_single)
        except (StoreUnavailable, DiskFull):
            raise
        except Exception:
            if is_single:
                await self.events.set_first_aside(name, now=self.now(), wait_s=_SET_ASIDE_S)
            raise
        if taken and reader.on_taken is not None:
            try:
                reader.on_taken()
            except BaseException:  # noqa: BLE001 - a plugin may raise anything
                _log.exception("events.on_taken_failed", reader=name)
        return taken > 0

    async def _forget_absent(self) -> None:
        if forgotten := await self.events.forget_absent(now=self.now()):
            _log.warning("events.forgotten", count=forgotten)

    async def _find_pending(self) -> list[str]:
        return ["events"] if await self.events.has_any(self._readers) else []

    async def _find_conditions(self) -> list[Condition]:
        return [
            Condition(
                name="events_waiting",
                subject=one.reader,
                level="warn",
                title=f"Events wait for {one.reader}",
                text=f"{one.count:,} events are not taken, the oldest for "
                f"{(self.now() - one.since) / 60:,.0f} minutes.",
                action="Find the error in the log line events.not_taken, and update the plugin."
                if one.reader in self._readers
                else "No plugin of this machine reads them: install or enable it again. Events "
                "without a plugin are deleted after 30 days.",
            )
            for one in await self.events.backlogs()
            if one.count >= _MANY or self.now() - one.since >= _LONG_S
        ]
