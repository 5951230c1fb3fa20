"""Alarms with their own database, and with conditions, clock and channels of a test."""

import asyncio
import contextlib

import attrs

from gateway.contracts.parts import Alarm
from gateway.store import SqliteStore
from gateway_operator.alarms.carriers import Outcomes
from gateway_operator.alarms.heartbeat import Heartbeat
from gateway_operator.alarms.operator_url import RequestFailed
from gateway_operator.alarms.sender import AlarmSender
from gateway_operator.alarms.watch import AlarmWatch
from gateway_operator.desk.conditions import Condition
from gateway_operator.sql import alarms
from tests.migrated_databases import put_database

NOW = 1_782_172_800.0


def condition(name: str = "margin", level: str = "bad", **changes) -> Condition:
    made = Condition(
        condition=name,
        subject="picture",
        level=level,
        title="picture is sold below its cost",
        text="It costs 0.03 US dollars and is sold for 0.02 USDC.",
        action="Raise the price.",
        page="endpoints",
        button="Change the price",
        href="/admin/endpoints/picture/price",
    )
    return attrs.evolve(made, **changes)


@attrs.define
class Inbox:
    """A channel that records its messages; `problem` makes it refuse, `hangs` blocks it."""

    channels: tuple[str, ...] = ("inbox",)
    received: list[Alarm] = attrs.field(factory=list)
    batches: list[int] = attrs.field(factory=list)
    ids: list[int] = attrs.field(factory=list)
    problem: str | None = None
    hangs: asyncio.Event | None = None
    _changed: asyncio.Event = attrs.field(factory=asyncio.Event)

    async def got(self, count: int) -> None:
        """Wait for `count` messages."""
        while len(self.received) < count:
            self._changed.clear()
            await self._changed.wait()

    async def carry(self, batches) -> Outcomes:
        messages = batches["inbox"] if "inbox" in batches else batches[self.channels[0]]
        if self.hangs is not None:
            await self.hangs.wait()
        if self.problem is None:
            self.received += [one.alarm for one in messages]
            self.batches.append(len(messages))
            self.ids += [one.id for one in messages]
            self._changed.set()
        return {one.id: self.problem for one in messages}

    def close(self) -> None:
        pass

    @property
    def events(self) -> list[tuple[str, str, str]]:
        return [(one.event, one.key, one.urgency) for one in self.received]


@attrs.define
class FakeUrl:
    """Receiver of a heartbeat."""

    beats: int = 0
    is_down: bool = False

    async def request(self, method: str, headers=None) -> None:
        if self.is_down:
            raise RequestFailed("Status 500.")
        self.beats += 1


@attrs.define
class AlarmDesk:
    """Alarms of one gateway; `at` is its clock."""

    store: SqliteStore
    inbox: Inbox
    heartbeat_url: FakeUrl
    holds: list[Condition] = attrs.field(factory=list)
    digests: list[Alarm] = attrs.field(factory=list)
    at: float = NOW
    others: tuple = ()
    # Raised by the database instead of a write.
    full: Exception | None = None
    is_leader: bool = True
    watch: AlarmWatch = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Start the alarms of a new process on the same database."""

        async def find_conditions():
            return list(self.holds)

        async def write_digest(last):
            return self.digests.pop() if self.digests else None

        async def try_write():
            if self.full is not None:
                raise self.full

        carriers = [self.inbox, *self.others] if self.inbox is not None else list(self.others)
        self.watch = AlarmWatch(
            store=self.store,
            find_conditions=find_conditions,
            try_write=try_write,
            write_digest=write_digest,
            clean=lambda text: text.replace("sk-secret", "…"),
            sender=AlarmSender(store=self.store, carriers=carriers, now=lambda: self.at),
            heartbeat=Heartbeat(address=self.heartbeat_url, now=lambda: self.at),
            now=lambda: self.at,
            base_url="https://gateway.example.com",
            gateway="Shop",
        )
        self.watch.is_mine = lambda: self.is_leader

    async def step(self, after_s: float = 30.0) -> None:
        """Let time pass, check once, and wait until every message is sent."""
        self.at += after_s
        await self.watch.step()
        await self.watch.sender.finish()
        if self.watch._beating is not None:
            await self.watch._beating

    async def open(self) -> list:
        return await self.store.sum(alarms.open_alarms)


@contextlib.asynccontextmanager
async def alarm_desk(folder, **options):
    async with SqliteStore(put_database(folder / "gateway.db")) as store:
        options = {"inbox": Inbox(), "heartbeat_url": FakeUrl()} | options
        desk = AlarmDesk(store=store, **options)
        try:
            yield desk
        finally:
            await desk.watch.close()
