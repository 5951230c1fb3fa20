"""A queue of events and its sender, without a gateway."""

import asyncio
import contextlib
import json
import socket

import attrs

from gateway import EventReader
from gateway.domain import GenerationRequest
from gateway.store import SqliteStore
from gateway_testing.facts import NOW, PAYER, RESULT, new_task, transfer, tx_hash
from gateway_webhooks import CallbackSecrets, Deliveries, DeliveryTiming, Sender, queue
from tests.migrated_databases import put_database


@attrs.define
class Names:
    """Addresses of a name; counts the lookups."""

    table: dict = attrs.field(factory=dict)
    asked: list = attrs.field(factory=list)

    def __call__(self, host, port, **_):
        self.asked.append(host)
        if host not in self.table:
            raise socket.gaierror(-2, "no such name")
        found = self.table[host]
        ips = found() if callable(found) else found
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in ips]


@attrs.define
class Shop:
    """Ended tasks, and deliveries of their events."""

    store: SqliteStore
    deliveries: Deliveries
    names: Names
    at: float = NOW
    _sold: int = 0

    async def ended(self, url, *, payer=PAYER) -> str:
        """Complete a paid task with a callback URL; return its id."""
        self._sold += 1
        tx, request = self._sold, GenerationRequest(prompt="a boat", callback_url=url)
        paid = attrs.evolve(transfer(tx), sender=payer)
        await self.store.accept_direct(new_task(request=request), tx_hash(tx), [paid], None)
        (lease,) = await self.store.queue.lease(1, lease_s=60, now=self.at)
        assert await self.store.queue.complete(lease, RESULT, expires_at=self.at + 60, now=self.at)
        await self.store.events.take(queue.NAME, queue.take, now=self.at)
        self.deliveries.wake()
        return lease.task_id

    async def left(self) -> list:
        """Pending events."""
        return await self.deliveries.queue.due(1000, now=4e9)

    async def until(self, condition) -> None:
        async with asyncio.timeout(120):
            while not await condition():  # noqa: ASYNC110 - no event tells
                await asyncio.sleep(0.01)

    async def until_left(self, count: int) -> None:
        async def is_so():
            return len(await self.left()) == count

        await self.until(is_so)


@contextlib.asynccontextmanager
async def opened(path, *, tls=None, is_local=True, timeout_s=60.0, start=True, **timing):
    """Yield a shop over the database in this folder; pauses are 0 unless a test sets them."""

    async def render(event, task):
        return json.dumps({"type": event.type, "data": {"taskId": task.id}}).encode()

    async def is_mine():
        return True

    names = Names({"127.0.0.1": ["127.0.0.1"], "localhost": ["127.0.0.1"]})
    async with SqliteStore(put_database(path / "gateway.db")) as store:
        reader = EventReader(take=queue.take, only_with_callback=True)
        await store.events.set_readers({queue.NAME: reader}, now=NOW)
        sender = Sender(is_local=is_local, timeout_s=timeout_s, tls=tls, resolve=names)
        shop = None
        deliveries = Deliveries(
            store=store,
            render=render,
            secrets=CallbackSecrets("installation"),
            sender=sender,
            is_mine=is_mine,
            now=lambda: shop.at if shop is not None else NOW,
            timing=DeliveryTiming(**{"pauses_s": (0.0,) * 5, "poll_s": 0.02, **timing}),
        )
        shop = Shop(store, deliveries, names)
        if start:
            await deliveries.start()
        try:
            yield shop
        finally:
            await deliveries.close()
