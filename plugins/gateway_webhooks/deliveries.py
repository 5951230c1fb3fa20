"""Delivers queued events, each until it is accepted, refused for good or too old.

At least once: an event leaves the queue after its receiver has accepted it, so after a crash in
between it is sent again under the same id. A receiver that hangs uses up slots of its payer and
host only.
"""

import asyncio
import contextlib
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable
from http import HTTPStatus

import attrs
import structlog

from gateway.contracts import Clock
from gateway.domain import Task
from gateway.store import SqlStore
from gateway_webhooks.queue import Delivery, DeliveryQueue
from gateway_webhooks.sender import NotTaken, Sender
from gateway_webhooks.signing import CallbackSecrets, sign

# Attempts at the same time: in all, for one payer, to one host.
_MAX = 16
_MAX_PER_PAYER = 4
_MAX_PER_HOST = 2
# To one host for one payer, in a minute.
_PACE = 10
_PACE_WINDOW_S = 60.0
_log = structlog.get_logger()

Render = Callable[[Delivery, Task], Awaitable[bytes]]
"""Returns the body of an event."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class DeliveryTiming:
    """Durations in seconds."""

    # Before each further attempt; after the last one the event is given up.
    pauses_s: tuple[float, ...] = (5.0, 300.0, 1_800.0, 7_200.0, 18_000.0)
    # Between two polls of the queue: another node may have taken an event.
    poll_s: float = 5.0
    # Between two reads of the queue at least.
    min_interval_s: float = 0.02
    # At the end, for attempts that have begun.
    drain_s: float = 5.0


class Pace:
    """Counts attempts by payer and host, so that a buyer cannot flood a third party."""

    def __init__(self) -> None:
        # The pair whose last attempt is the oldest comes first.
        self._sent: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()

    def take(self, payer: str, host: str, now: float) -> float:
        """Count an attempt now; returns 0, or the time from which on the next one may begin."""
        self._forget(now)
        times = self._sent.setdefault((payer, host), deque())
        if times and times[-1] > now:
            # The clock was set back.
            times.clear()
        while times and times[0] <= now - _PACE_WINDOW_S:
            times.popleft()
        if len(times) >= _PACE:
            return times[0] + _PACE_WINDOW_S
        times.append(now)
        self._sent.move_to_end((payer, host))
        return 0.0

    def _forget(self, now: float) -> None:
        while self._sent:
            pair, times = next(iter(self._sent.items()))
            if times and times[-1] > now - _PACE_WINDOW_S:
                return
            del self._sent[pair]


@attrs.define(kw_only=True, eq=False, repr=False)
class Deliveries:
    """Sends the events of the queue."""

    store: SqlStore
    render: Render
    secrets: CallbackSecrets
    sender: Sender
    now: Clock
    timing: DeliveryTiming = attrs.field(factory=DeliveryTiming)
    # False while another node delivers.
    is_mine: Callable[[], Awaitable[bool]]
    queue: DeliveryQueue = attrs.field(init=False)
    _pace: Pace = attrs.field(factory=Pace, init=False)
    _wake: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _sending: dict[asyncio.Task[None], Delivery] = attrs.field(factory=dict, init=False)
    _dispatcher: asyncio.Task[None] | None = attrs.field(default=None, init=False)

    @queue.default
    def _make_queue(self) -> DeliveryQueue:
        return DeliveryQueue(self.store)

    async def start(self) -> None:
        """Begin to deliver, including events left by an earlier process."""
        self._dispatcher = asyncio.create_task(self._dispatch(), name="webhooks")

    def wake(self) -> None:
        """Read the queue now."""
        self._wake.set()

    async def find_pending(self) -> list[str]:
        """Return `webhooks` while an event waits for its delivery or for another attempt."""
        return [] if await self.queue.earliest() is None else ["webhooks"]

    async def close(self) -> None:
        """Start no more attempts, wait for running ones, and leave the rest in the queue."""
        if self._dispatcher is not None:
            self._dispatcher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._dispatcher
        if self._sending:
            await asyncio.wait(self._sending, timeout=self.timing.drain_s)
        for attempt in list(self._sending):
            attempt.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)
        await self.sender.close()

    async def _dispatch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._wake.clear()
            read_at, pause_s = loop.time(), self.timing.poll_s
            try:
                due = await self._start_due() if await self.is_mine() else None
                if due is not None:
                    pause_s = min(pause_s, max(due - self.now(), 0.0))
            except Exception:  # noqa: BLE001 - the dispatcher's edge
                _log.exception("webhook.dispatch_failed")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._wake.wait()
            await asyncio.sleep(read_at + self.timing.min_interval_s - loop.time())

    async def _start_due(self) -> float | None:
        """Start due attempts; return the time of the next one, or None."""
        due = await self.queue.earliest()
        if due is None or due > self.now():
            return due
        while await self.is_mine() and await self._start_some():
            pass
        return await self.queue.next_due(now=self.now())

    async def _start_some(self) -> bool:
        """Start attempts, or postpone those above their rate; returns whether there may be more."""
        free = _MAX - len(self._sending)
        if free <= 0:
            return False
        payers = Counter(event.payer for event in self._sending.values())
        hosts = Counter(event.host for event in self._sending.values())
        events = await self.queue.due(
            free,
            now=self.now(),
            sending=[event.id for event in self._sending.values()],
            busy_payers=[payer for payer, count in payers.items() if count >= _MAX_PER_PAYER],
            busy_hosts=[host for host, count in hosts.items() if count >= _MAX_PER_HOST],
        )
        for event in events:
            if payers[event.payer] >= _MAX_PER_PAYER or hosts[event.host] >= _MAX_PER_HOST:
                continue
            if until := self._pace.take(event.payer, event.host, self.now()):
                await self.queue.postpone(event, until=until)
                continue
            payers[event.payer] += 1
            hosts[event.host] += 1
            self._start_attempt(event)
        return bool(events)

    def _start_attempt(self, event: Delivery) -> None:
        attempt = asyncio.create_task(self._deliver(event), name=f"webhook-{event.id}")
        self._sending[attempt] = event
        attempt.add_done_callback(self._end_attempt)

    def _end_attempt(self, attempt: asyncio.Task[None]) -> None:
        del self._sending[attempt]
        self.wake()

    async def _deliver(self, event: Delivery) -> None:
        """Make one attempt, and record its outcome."""
        try:
            problem, is_final = await self._attempt(event)
        except Exception as error:  # noqa: BLE001 - the edge of one attempt: it counts as failed
            problem, is_final = f"The attempt failed: {type(error).__name__}.", False
        # The address may hold a secret of the buyer's: the log has its host only.
        about = {"task": event.task_id, "type": str(event.type), "host": event.host}
        try:
            if problem is None:
                await self.queue.end(event)
                _log.info("webhook.delivered", **about, attempt=event.failures + 1)
            elif is_final or event.failures >= len(self.timing.pauses_s):
                await self.queue.end(event)
                _log.warning("webhook.given_up", **about, problem=problem)
            else:
                pause_s = self.timing.pauses_s[event.failures]
                await self.queue.retry(event, due_at=self.now() + pause_s)
                _log.info("webhook.retry_scheduled", **about, problem=problem, pause_s=pause_s)
        except Exception:  # noqa: BLE001 - as above; the event is due again after the pause
            _log.exception("webhook.not_written", **about)
            await asyncio.sleep(self.timing.poll_s)

    async def _attempt(self, event: Delivery) -> tuple[str | None, bool]:
        """Send an event; returns (the problem or None, whether it is final)."""
        task = await self.store.task(event.task_id)
        if task is None:
            return "Its task does not exist.", True
        structlog.contextvars.bind_contextvars(
            task=task.id, slug=task.slug, payment=task.payment.id
        )
        body = await self.render(event, task)
        headers = sign(self.secrets.of(task.id), event.message_id, self.now(), body)
        try:
            status = await self.sender.post(event.url, body, headers)
        except NotTaken as error:
            return str(error), False
        is_taken = HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES
        return (None if is_taken else f"Status {status}."), status == HTTPStatus.GONE
