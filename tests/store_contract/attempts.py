"""Contract of every store: the leases of a task that ended before its end."""

import pytest

from gateway.contracts import Lease
from gateway.contracts.store import AttemptRecord
from gateway.domain import MAX_ATTEMPTS, Handle
from gateway.store import SqlStore
from gateway_testing.facts import NOW, RESULT, leased
from tests.store_contract.jobs import only_lease


async def ended(store: SqlStore, now: float) -> tuple[AttemptRecord, ...]:
    """The records of the only due task."""
    return (await only_lease(store, now)).ended


def brief(lease: Lease) -> list[tuple[int, str, int]]:
    """Number, outcome and times of each record."""
    return [(one.number, one.outcome, one.times) for one in lease.ended]


class AttemptsContract:
    """The records of attempts that neither completed nor failed their task."""

    async def test_a_first_attempt_has_no_record_before_it(self, store: SqlStore) -> None:
        lease = await leased(store)
        assert (lease.begun_at, lease.ended) == (NOW, ())

    async def test_a_retry_records_the_attempt_with_its_reason(self, store: SqlStore) -> None:
        lease = await leased(store)
        await store.queue.retry(
            lease,
            delay_s=5,
            now=NOW + 2,
            costs_attempt=True,
            details="timed_out",
            reason="no answer: ü",
        )
        (found,) = await ended(store, NOW + 7)
        assert found == AttemptRecord(
            number=1,
            begun_at=NOW,
            ended_at=NOW + 2,
            outcome="failed",
            details="timed_out",
            message="no answer: ü",
            node=lease.node,
        )

    async def test_each_kind_of_end_is_recorded_in_order(self, store: SqlStore) -> None:
        queue = store.queue
        await queue.give_back(await leased(store), stopped_at=NOW + 1)
        await queue.retry(await only_lease(store, NOW + 2), delay_s=0, now=NOW, costs_attempt=False)
        await only_lease(store, NOW + 3)
        await queue.recover(now=NOW + 4)
        await only_lease(store, NOW + 5)
        expired = await only_lease(store, NOW + 66)
        await queue.retry(expired, delay_s=0, now=NOW + 67, costs_attempt=True)
        last = await only_lease(store, NOW + 68)
        kinds = ["stopped", "put_off", "died", "died", "failed"]
        assert brief(last) == [(1, kind, 1) for kind in kinds]
        assert [one.begun_at for one in last.ended] == [NOW, NOW + 2, NOW + 3, NOW + 5, NOW + 66]
        assert [one.ended_at for one in last.ended][2:] == [NOW + 4, NOW + 66, NOW + 67]
        assert (last.attempt, last.begun_at) == (2, NOW + 68)
        assert await queue.complete(last, RESULT, expires_at=NOW + 99, now=NOW + 70)

    async def test_a_job_that_is_resumed_stays_the_same_attempt(self, store: SqlStore) -> None:
        await store.queue.save_handle(await leased(store), Handle(id="job-7"))
        await store.queue.recover(now=NOW + 4)
        again = await only_lease(store, NOW + 5)
        assert (again.attempt, brief(again)) == (1, [(1, "died", 1)])

    async def test_a_lease_that_began_no_attempt_is_not_recorded(self, store: SqlStore) -> None:
        await store.queue.give_back(await leased(store))
        again = await only_lease(store, NOW + 1)
        assert (again.attempt, again.ended, again.begun_at) == (1, (), NOW + 1)

    @pytest.mark.parametrize("text", ["null", "no JSON", '[{"number": null}]', '[[], "x"]', "{}"])
    async def test_records_that_nobody_can_read_stop_nothing(
        self, store: SqlStore, text: str
    ) -> None:
        lease = await leased(store)
        sql = "UPDATE tasks SET attempts = ?"
        await store.write(lambda db: db.execute(sql, (text,)).rowcount)
        assert await store.queue.recover(now=NOW + 1) == 1
        again = await only_lease(store, NOW + 2)
        assert (again.task_id, brief(again)) == (lease.task_id, [(1, "died", 1)])

    async def test_who_lost_the_lease_records_nothing(self, store: SqlStore) -> None:
        lost = await leased(store)
        await store.queue.recover(now=NOW + 1)
        assert not await store.queue.retry(lost, delay_s=0, now=NOW + 2, costs_attempt=True)
        assert not await store.queue.give_back(lost, stopped_at=NOW + 2)
        assert [one.outcome for one in await ended(store, NOW + 3)] == ["died"]

    async def test_waits_in_a_row_are_one_record(self, store: SqlStore) -> None:
        lease = await leased(store)
        for after in range(1, 9):
            await store.queue.retry(
                lease, delay_s=0, now=NOW + after, costs_attempt=False, reason=f"busy {after}"
            )
            lease = await only_lease(store, NOW + after)
        (found,) = lease.ended
        assert (found.begun_at, found.ended_at, found.times) == (NOW, NOW + 8, 8)
        assert found.message == "busy 8"

    async def test_the_records_of_a_task_are_limited(self, store: SqlStore) -> None:
        lease, now = await leased(store), NOW
        for number in range(1, MAX_ATTEMPTS):
            for _ in range(15):
                now += 1
                await store.queue.retry(lease, delay_s=0, now=now, costs_attempt=False)
                await only_lease(store, now)
                await store.queue.recover(now=now)
                lease = await only_lease(store, now)
            await store.queue.retry(lease, delay_s=0, now=now, costs_attempt=True)
            lease = await only_lease(store, now)
            assert lease.attempt == number + 1
        assert len(lease.ended) <= 36
        assert sum(one.times for one in lease.ended) == 31 * (MAX_ATTEMPTS - 1)
        failed = [one.number for one in lease.ended if one.outcome == "failed"]
        assert failed == list(range(1, MAX_ATTEMPTS))
