"""A node that stood still: it opens new connections, and leads only after a heartbeat."""

import time

import pytest

from gateway_nodes.postgres.store import PostgresStore
from gateway_testing.facts import queued


@pytest.fixture
async def nodes(migrated_url):
    async with (
        PostgresStore(migrated_url, node="a", connections=1) as one,
        PostgresStore(migrated_url, node="b") as other,
    ):
        for store in (one, other):
            await store.nodes.register(now=time.time())
        yield one, other


def backend(db):
    return db.execute("SELECT pg_backend_pid()").fetchone()[0]


async def test_connections_are_replaced_before_their_next_use(nodes):
    one, _ = nodes
    before = [await one._short_read(backend), await one._short_read(backend)]
    assert len(set(before)) == 1
    await one.renew_connections()
    after = [await one._short_read(backend), await one._write(backend)]
    assert len({*before, *after}) == 2


async def test_a_leader_whose_lease_another_node_has_leads_no_more(nodes):
    one, other = nodes
    await one.nodes.start(time.time)
    assert one.nodes.leads()
    # Its own clock stood still, so it has not noticed that its lease ended.
    await one._write(lambda db: db.execute("UPDATE roles SET until = 0 WHERE name = 'leader'"))
    assert await other.nodes.renew(lease_s=60, now=time.time())
    assert one.nodes.leads()
    await one.nodes.resume(time.time)
    assert not one.nodes.leads()
    await one.nodes.stop()


async def test_a_task_that_another_node_leased_meanwhile_is_not_finished_twice(nodes):
    one, other = nodes
    await queued(one, created_at=time.time())
    now = time.time()
    (lease,) = await one.queue.lease(9, lease_s=60, now=now)
    (taken,) = await other.queue.lease(9, lease_s=60, now=now + 120)
    assert taken.task_id == lease.task_id
    # What `check_leases` asks for each running attempt.
    assert not await one.queue.extend(lease, lease_s=60, now=now + 121, progress=None)
    assert await other.queue.extend(taken, lease_s=60, now=now + 121, progress=None)
