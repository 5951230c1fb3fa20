"""Contract of every store: vendors' jobs with submit marks, handles, rests, returned leases."""

import asyncio

import attrs
import pytest

from gateway.contracts import Cost, Lease
from gateway.domain import Handle
from gateway.store import SqlStore
from gateway_testing.facts import (
    ENDPOINT,
    NOW,
    RESULT,
    known,
    leased,
    new_task,
    queued,
    transfer,
    tx_hash,
)

HANDLE = Handle(id="job-7", urls={"get": "https://api.example/7?ü=1", "cancel": ""})


async def only_lease(store: SqlStore, now: float, *blocked: str) -> Lease:
    """The only due lease."""
    (lease,) = await store.queue.lease(9, lease_s=60, now=now, blocked=blocked)
    return lease


async def paper(store: SqlStore, tx: int) -> str:
    """Accept a direct transfer for a slug that `queued` does not use; return the task's id."""
    endpoint = attrs.evolve(ENDPOINT, slug="paper", capability="document-parsing")
    task = new_task(endpoint=endpoint)
    await store.accept_direct(task, tx_hash(tx), [transfer(tx)], None)
    return task.id


class JobsContract:
    """Submits and jobs that a restart finds, and tasks that are not leased for a while."""

    # -- marks and handles

    async def test_a_new_lease_knows_of_no_submit(self, store: SqlStore) -> None:
        lease = await leased(store)
        assert (lease.sent_at, lease.handle) == (None, None)

    async def test_a_mark_is_found_by_whoever_comes_next(self, store: SqlStore) -> None:
        lease = await leased(store)
        assert await store.queue.begin_submit(lease, now=NOW + 1)
        await store.queue.recover(now=NOW + 2)
        again = await only_lease(store, NOW + 2)
        assert (again.sent_at, again.handle, again.attempt) == (NOW + 1, None, 1)

    async def test_a_handle_is_found_whole_and_costs_no_attempt(self, store: SqlStore) -> None:
        lease = await leased(store)
        assert await store.queue.begin_submit(lease, now=NOW + 1)
        assert await store.queue.save_handle(lease, Handle(id="before"))
        assert await store.queue.save_handle(lease, HANDLE)
        for restart in range(1, 6):
            await store.queue.recover(now=NOW + restart)
            again = await only_lease(store, NOW + restart)
            assert (again.handle, again.sent_at, again.attempt) == (HANDLE, NOW + 1, 1)
        assert (await known(store, lease.task_id)).attempt == 1

    async def test_a_handle_that_cannot_be_read_back_is_refused(self, store: SqlStore) -> None:
        lease = await leased(store)
        bad = Handle(id="7", urls=None)  # type: ignore[arg-type]
        with pytest.raises(Exception):  # noqa: B017 - whatever the store's reader raises
            await store.queue.save_handle(lease, bad)
        await store.queue.recover(now=NOW + 1)
        assert (await only_lease(store, NOW + 1)).handle is None

    async def test_a_retry_forgets_mark_and_handle(self, store: SqlStore) -> None:
        lease = await leased(store)
        await store.queue.begin_submit(lease, now=NOW)
        await store.queue.save_handle(lease, HANDLE)
        assert await store.queue.retry(lease, delay_s=5, now=NOW, costs_attempt=True)
        again = await only_lease(store, NOW + 5)
        assert (again.sent_at, again.handle, again.attempt) == (None, None, 2)

    async def test_a_job_found_again_may_be_retried_too(self, store: SqlStore) -> None:
        lease = await leased(store)
        await store.queue.save_handle(lease, HANDLE)
        await store.queue.recover(now=NOW + 1)
        resumed = await only_lease(store, NOW + 1)
        await store.queue.retry(resumed, delay_s=2, now=NOW, costs_attempt=True)
        assert (await only_lease(store, NOW + 2)).attempt == 2

    async def test_who_lost_the_lease_marks_and_saves_nothing(self, store: SqlStore) -> None:
        lost = await leased(store)
        held = await only_lease(store, NOW + 61)
        assert not await store.queue.begin_submit(lost, now=NOW + 62)
        assert not await store.queue.save_handle(lost, HANDLE)
        assert not await store.queue.give_back(lost)
        await store.queue.give_back(held)
        again = await only_lease(store, NOW + 63)
        assert (again.sent_at, again.handle) == (None, None)

    async def test_an_end_takes_no_mark_and_no_handle(self, store: SqlStore) -> None:
        lease = await leased(store)
        assert await store.queue.complete(lease, RESULT, expires_at=NOW + 99, now=NOW)
        assert not await store.queue.begin_submit(lease, now=NOW)
        assert not await store.queue.save_handle(lease, HANDLE)
        assert not await store.queue.give_back(lease)

    async def test_an_end_keeps_who_generated_and_what_it_cost(self, store: SqlStore) -> None:
        cost = Cost(micros=40_000, source="told")
        priced, unpriced = await leased(store, 1), await leased(store, 2)
        end = store.queue.complete
        assert await end(priced, RESULT, expires_at=NOW + 99, now=NOW, cost=cost, provider="acme")
        assert await end(unpriced, RESULT, expires_at=NOW + 99, now=NOW)
        jobs = await store.jobs_of([priced.task_id, unpriced.task_id])
        job = jobs[priced.task_id]
        assert (job.cost_micros, job.cost_source, job.provider) == (40_000, "told", "acme")
        job = jobs[unpriced.task_id]
        assert (job.cost_micros, job.cost_source, job.provider) == (None, None, None)

    async def test_a_failure_keeps_the_vendors_words(self, store: SqlStore) -> None:
        lease = await leased(store)
        assert await store.queue.fail(
            lease,
            details="provider_error",
            error="The provider failed after all retries.",
            now=NOW,
            reason="503 overloaded: come back later",
            provider="acme",
        )
        job = (await store.jobs_of([lease.task_id]))[lease.task_id]
        assert (job.reason, job.provider) == ("503 overloaded: come back later", "acme")
        task = await known(store, lease.task_id)
        assert task.error == "The provider failed after all retries."

    # -- returned leases

    async def test_a_lease_given_back_cost_nothing_and_comes_first(self, store: SqlStore) -> None:
        old = await leased(store, 1, created_at=NOW - 10)
        await queued(store, 2, created_at=NOW - 5)
        assert await store.queue.give_back(old)
        assert (await known(store, old.task_id)).attempt == 0
        first, _ = await store.queue.lease(9, lease_s=60, now=NOW)
        assert (first.task_id, first.attempt) == (old.task_id, 1)

    async def test_a_job_given_back_keeps_mark_and_handle(self, store: SqlStore) -> None:
        lease = await leased(store)
        await store.queue.begin_submit(lease, now=NOW)
        await store.queue.save_handle(lease, HANDLE)
        assert await store.queue.give_back(lease)
        again = await only_lease(store, NOW)
        assert (again.sent_at, again.handle, again.attempt) == (NOW, HANDLE, 1)

    async def test_a_mark_given_back_stays(self, store: SqlStore) -> None:
        lease = await leased(store)
        await store.queue.begin_submit(lease, now=NOW + 1)
        await store.queue.give_back(lease)
        assert (await only_lease(store, NOW + 2)).sent_at == NOW + 1

    async def test_what_a_dead_process_held_comes_before_younger_tasks(
        self, store: SqlStore
    ) -> None:
        held = await leased(store, 1, created_at=NOW - 10)
        younger = await queued(store, 2, created_at=NOW - 5)
        await store.queue.recover(now=NOW)
        order = [lease.task_id for lease in await store.queue.lease(9, lease_s=60, now=NOW)]
        assert order == [held.task_id, younger.id]

    async def test_a_batch_is_handed_out_in_order(self, store: SqlStore) -> None:
        ages = (3, 9, 1, 7, 5, 8, 2, 6, 4)
        tasks = {age: await queued(store, age, created_at=NOW - age) for age in ages}
        order = [lease.task_id for lease in await store.queue.lease(9, lease_s=60, now=NOW)]
        assert order == [tasks[age].id for age in sorted(ages, reverse=True)]

    # -- rests

    async def test_what_rests_is_not_handed_out(self, store: SqlStore) -> None:
        picture, other = await queued(store, 1), await paper(store, 2)
        assert (await only_lease(store, NOW, "picture", "nobody's")).task_id == other
        assert await store.queue.lease(9, lease_s=60, now=NOW, blocked=["picture"]) == []
        assert (await known(store, picture.id)).attempt == 0
        assert (await only_lease(store, NOW)).task_id == picture.id

    async def test_what_was_submitted_does_not_rest(self, store: SqlStore) -> None:
        for tx in (1, 2, 3):
            lease = await leased(store, tx, id=f"begun-{tx}")
            if tx == 1:
                await store.queue.begin_submit(lease, now=NOW)
            if tx == 2:
                await store.queue.save_handle(lease, HANDLE)
        await store.queue.recover(now=NOW + 1)
        found = await store.queue.lease(9, lease_s=60, now=NOW + 1, blocked=["picture"])
        assert sorted(lease.task_id for lease in found) == ["begun-1", "begun-2"]

    async def test_the_next_due_is_not_one_that_rests(self, store: SqlStore) -> None:
        await queued(store, 1, created_at=NOW - 9)
        assert await store.queue.next_due(["picture"], now=NOW) is None
        other = await paper(store, 2)
        assert await store.queue.next_due(["picture"], now=NOW) == NOW
        assert await store.queue.next_due(["picture", "paper"], now=NOW) is None
        assert await store.queue.next_due(now=NOW) == NOW - 9
        lease = await only_lease(store, NOW, "picture")
        assert lease.task_id == other
        await store.queue.save_handle(lease, HANDLE)
        assert await store.queue.next_due(["picture", "paper"], now=NOW) == NOW + 60

    async def test_a_mark_and_a_lost_lease_at_once_have_one_order(self, store: SqlStore) -> None:
        """Either the next lease finds the mark, or the first worker does not submit."""
        lease = await leased(store)
        is_marked, _, found = await asyncio.gather(
            store.queue.begin_submit(lease, now=NOW + 1),
            store.queue.recover(now=NOW + 1),
            store.queue.lease(1, lease_s=60, now=NOW + 1),
        )
        if not found:
            # A store with concurrent writes may read before the lease is lost.
            found = await store.queue.lease(1, lease_s=60, now=NOW + 1)
        assert is_marked == (found[0].sent_at is not None)
