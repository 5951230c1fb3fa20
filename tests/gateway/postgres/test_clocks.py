"""Nodes with different clocks:

the database's clock decides leases; a node far from it starts nothing.
"""

import time

import pytest

from gateway_nodes.postgres.store import PostgresStore
from gateway_testing.facts import queued


@pytest.fixture(autouse=True, scope="module")
def _own_clock() -> None:
    """Let the database decide."""


@pytest.fixture
async def nodes(migrated_url):
    async with (
        PostgresStore(migrated_url, node="a") as one,
        PostgresStore(migrated_url, node="b") as other,
    ):
        for store in (one, other):
            await store.nodes.register(now=time.time())
        yield one, other


async def queue_one(store) -> None:
    await queued(store, created_at=time.time())


async def claim(store, *, ahead_s: float = 0.0, lease_s: float = 60.0):
    return await store.queue.lease(9, lease_s=lease_s, now=time.time() + ahead_s)


@pytest.mark.parametrize("ahead_s", [90, 1e7, -90])
async def test_a_clock_that_jumps_takes_over_no_running_task(nodes, ahead_s):
    one, other = nodes
    await queue_one(one)
    (lease,) = await claim(one)
    assert await claim(other, ahead_s=ahead_s) == []
    assert await one.queue.extend(lease, lease_s=60, now=time.time(), progress=None)


@pytest.mark.parametrize("ahead_s", [6, 90, 1e7, -6, -90])
async def test_a_node_whose_clock_is_off_begins_nothing_until_it_is_right(nodes, ahead_s):
    one, other = nodes
    await queue_one(one)
    assert await claim(other, ahead_s=ahead_s) == []
    # Nor does it poll in a loop.
    assert await other.queue.next_due(now=time.time() + ahead_s) is None
    assert len(await claim(other)) == 1


async def test_a_clock_that_went_back_loses_no_lease(nodes):
    one, other = nodes
    await queue_one(one)
    (lease,) = await claim(one, lease_s=60)
    assert await one.queue.extend(lease, lease_s=60, now=time.time() - 90, progress=None)
    assert await other.queue.next_due(now=time.time()) > time.time() + 50
    assert await claim(other) == []


async def test_a_lease_ends_by_the_database_s_clock(nodes):
    one, other = nodes
    await queue_one(one)
    (ended,) = await claim(one, ahead_s=4, lease_s=0)
    (lease,) = await claim(other)
    # The end of a lease is a death of its node, which costs no attempt.
    assert (lease.attempt, lease.restarts, lease.token != ended.token) == (1, 1, True)


async def test_what_a_node_with_a_fast_clock_sold_or_put_off_is_due_at_once(nodes):
    one, other = nodes
    await queued(one, created_at=time.time() + 90)
    (lease,) = await claim(other)
    assert await other.queue.retry(lease, delay_s=0, now=time.time() + 90, costs_attempt=True)
    (lease,) = await claim(one)
    assert await one.queue.give_back(lease)
    assert len(await claim(other)) == 1


async def test_a_node_whose_clock_is_off_is_no_worker(nodes):
    one, other = nodes
    for ahead_s in (90, 0):
        for store in (*nodes, one):
            await store.nodes.renew(lease_s=60, now=time.time() + ahead_s)
        assert one.nodes.has_workers is other.nodes.has_workers is (ahead_s == 0)
        for found in await one.nodes.nodes():
            assert ("worker" in found.roles) is (ahead_s == 0)
        assert bool(other.nodes.clock_problem) is (ahead_s != 0)
