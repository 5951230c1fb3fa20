"""Contract of every store: deliveries, queued when events are taken and kept until ended."""

import pytest

from gateway.contracts import Lease
from gateway.contracts.parts import EventReader, EventType
from gateway.domain import GenerationRequest
from gateway.store import SqlStore
from gateway_testing.facts import (
    NOW,
    PAYER,
    RESULT,
    leased,
    reserved,
    tx_hash,
)
from gateway_webhooks import queue
from gateway_webhooks.queue import Delivery, DeliveryQueue
from tests.store_contract.events import begin_refund

_URL = "https://Buyer.example:8443/hook?token=1"
_REQUEST = GenerationRequest(prompt="a boat", callback_url=_URL)


async def _ended(store: SqlStore, tx: int = 1, url: str = _URL) -> Lease:
    """Complete a task with a callback URL."""
    request = GenerationRequest(prompt="a boat", callback_url=url)
    lease = await leased(store, tx, request=request)
    assert await store.queue.complete(lease, RESULT, expires_at=NOW + 60, now=NOW)
    return lease


async def _due(store: SqlStore, now: float = NOW) -> list[Delivery]:
    """Take the events that wait, and return the deliveries that are due."""
    await store.events.take(queue.NAME, queue.take, now=now)
    return await DeliveryQueue(store).due(100, now=now)


class WebhooksContract:
    """Events of tasks and refunds, and the queue of the plugin that delivers them."""

    @pytest.fixture(autouse=True)
    async def _reading(self, store: SqlStore) -> None:
        reader = EventReader(take=queue.take, only_with_callback=True)
        await store.events.set_readers({queue.NAME: reader}, now=NOW)

    async def test_a_completed_task_leaves_one_event(self, store: SqlStore) -> None:
        lease = await leased(store, request=_REQUEST)
        assert await _due(store) == []
        assert await store.queue.complete(lease, RESULT, expires_at=NOW + 60, now=NOW + 1)
        # A repeat, as after a lost response.
        assert await store.queue.complete(lease, RESULT, expires_at=NOW + 60, now=NOW + 2)
        (event,) = await _due(store, NOW + 2)
        assert (event.task_id, event.type) == (lease.task_id, EventType.TASK_COMPLETED)
        assert (event.url, event.host, event.payer) == (_URL, "buyer.example", PAYER)
        assert (event.at, event.failures) == (NOW + 1, 0)
        assert "token" not in repr(event)

    async def test_the_provider_does_not_see_the_address(self, store: SqlStore) -> None:
        lease = await leased(store, request=_REQUEST)
        assert lease.request == GenerationRequest(prompt="a boat")

    async def test_a_failed_task_and_its_refund_leave_one_event_each(self, store: SqlStore) -> None:
        lease = await leased(store, request=_REQUEST)
        assert await store.queue.fail(lease, details="timed_out", error="Late.", now=NOW)
        assert [event.type for event in await _due(store)] == [EventType.TASK_FAILED]
        payment_id = await begin_refund(store, lease.task_id)
        assert await store.refunds.end(payment_id, tx_hash(9), now=NOW)
        assert not await store.refunds.end(payment_id, tx_hash(9), now=NOW)
        kinds = [event.type for event in await _due(store)]
        assert kinds == [EventType.TASK_FAILED, EventType.REFUND_SENT]
        ids = {event.message_id for event in await _due(store)}
        assert len(ids) == 2
        assert not any("." in one for one in ids)

    async def test_without_an_address_or_a_payment_there_is_no_event(self, store: SqlStore) -> None:
        lease = await leased(store)
        assert await store.queue.complete(lease, RESULT, expires_at=NOW + 60, now=NOW)
        unpaid = await reserved(store, request=_REQUEST)
        assert await store.release(unpaid.payment.id, now=NOW)
        assert await _due(store) == []

    async def test_an_event_that_was_not_taken_comes_after_fresh_ones(
        self, store: SqlStore
    ) -> None:
        first, second = await _ended(store, 1), await _ended(store, 2)
        (event, _) = await _due(store)
        assert event.task_id == first.task_id
        await DeliveryQueue(store).retry(event, due_at=NOW + 5)
        assert [one.task_id for one in await _due(store)] == [second.task_id]
        assert await DeliveryQueue(store).next_due(now=NOW) == NOW + 5
        assert await DeliveryQueue(store).earliest() == NOW
        again = await _due(store, NOW + 5)
        assert [(one.task_id, one.failures) for one in again] == [
            (second.task_id, 0),
            (first.task_id, 1),
        ]
        assert again[1].message_id == event.message_id

    async def test_an_event_that_ended_is_gone(self, store: SqlStore) -> None:
        await _ended(store)
        (event,) = await _due(store)
        await DeliveryQueue(store).end(event)
        await DeliveryQueue(store).end(event)
        assert await _due(store, NOW + 10**6) == []
        assert await DeliveryQueue(store).next_due(now=0) is None
        assert await DeliveryQueue(store).earliest() is None

    async def test_what_is_busy_is_left_out(self, store: SqlStore) -> None:
        for tx, url in enumerate((_URL, _URL, "https://other.example/"), start=1):
            await _ended(store, tx, url)
        first, second, other = await _due(store)
        due = DeliveryQueue(store).due
        assert await due(9, now=NOW, sending=[first.id]) == [second, other]
        assert await due(9, now=NOW, busy_hosts=["buyer.example"]) == [other]
        assert await due(9, now=NOW, busy_payers=[PAYER]) == []
        assert await due(1, now=NOW) == [first]

    async def test_a_payers_events_to_one_host_are_postponed_together(
        self, store: SqlStore
    ) -> None:
        for tx, url in enumerate((_URL, _URL, "https://other.example/"), start=1):
            await _ended(store, tx, url)
        first, second, other = await _due(store)
        await DeliveryQueue(store).postpone(first, until=NOW + 60)
        assert await _due(store) == [other]
        assert await _due(store, NOW + 60) == [other, first, second]
