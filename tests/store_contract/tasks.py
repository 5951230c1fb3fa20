"""Contract of every store: tasks with leases, results, retention, counts and logins."""

import asyncio
import itertools
import json

import attrs
import pytest

from gateway.domain import WAITS_FOR_MEMORY, Attachment, GenerationRequest, PaymentState, TaskStatus
from gateway.store import SqlStore
from gateway.store.sql import Connection
from gateway_testing.facts import (
    ENDPOINT,
    NOW,
    RESULT,
    known,
    leased,
    new_task,
    queued,
    reserved,
    settling,
    transfer,
    tx_hash,
)
from tests.store_contract.jobs import JobsContract


class WorkingContract(JobsContract):
    """The queue with leases and results; counts and logins."""

    # -- leases

    async def test_a_claim_hands_out_everything_a_provider_needs(self, store: SqlStore) -> None:
        request = GenerationRequest(
            prompt="a boat",
            aspect_ratio="1:1",
            attachment=Attachment(name="a.pdf", data=b"%PDF"),
        )
        lease = await leased(store, request=request)
        assert (lease.slug, lease.request, lease.attempt) == ("picture", request, 1)
        assert lease.until == NOW + 60
        task = await known(store, lease.task_id)
        assert (task.status, task.attempt, task.started_at) == (TaskStatus.PROCESSING, 1, NOW)

    async def test_a_fallbacks_task_is_leased_as_the_makers_and_ends_as_the_bought(
        self, store: SqlStore
    ) -> None:
        maker = attrs.evolve(ENDPOINT, slug="spare", model="model of spare")
        task = await queued(store, maker=maker)
        for seen in (task, await known(store, task.id)):
            assert (seen.slug, seen.payment.slug) == ("picture", "picture")
            assert (seen.made_by, seen.made_model) == ("spare", "model of spare")
        assert await store.queue.lease(1, lease_s=60, now=NOW, known=["picture"]) == []
        (lease,) = await store.queue.lease(1, lease_s=60, now=NOW, known=["spare"])
        assert (lease.slug, lease.sold_as, lease.bought) == ("spare", "picture", "picture")
        assert await store.queue.complete(lease, RESULT, expires_at=NOW + 99, now=NOW + 1)
        rows = await store._rows("SELECT slug, made_by FROM tasks WHERE id = ?", task.id)
        assert [tuple(row[:]) for row in rows] == [("picture", "spare")]

    @pytest.mark.parametrize(
        "change", ["made_by = 'spare'", "slug = 'spare'", "slug = sold_as", "sold_as = 'other'"]
    )
    async def test_the_maker_of_a_task_never_changes(self, store: SqlStore, change: str) -> None:
        maker = attrs.evolve(ENDPOINT, slug="lent", model="model of lent")
        task = await queued(store, maker=maker)

        def give_away(db: Connection) -> None:
            db.execute(f"UPDATE tasks SET {change} WHERE id = ?", (task.id,))

        with pytest.raises(Exception, match="the maker of an order never changes"):
            await store.write(give_away)

    async def test_the_longest_due_is_claimed_first(self, store: SqlStore) -> None:
        tasks = [await queued(store, tx, created_at=NOW - tx) for tx in (1, 3, 2)]
        (first,) = await store.queue.lease(1, lease_s=60, now=NOW)
        (second,) = await store.queue.lease(1, lease_s=60, now=NOW)
        assert [first.task_id, second.task_id] == [tasks[1].id, tasks[2].id]

    async def test_a_task_is_claimed_once_however_many_ask(self, store: SqlStore) -> None:
        for tx in range(1, 11):
            await queued(store, tx)
        rounds = await asyncio.gather(
            *(store.queue.lease(3, lease_s=60, now=NOW) for _ in range(20))
        )
        leases = [lease for leases in rounds for lease in leases]
        assert len(leases) == len({lease.task_id for lease in leases}) == 10
        assert len({lease.token for lease in leases}) == 10
        assert max(map(len, rounds)) <= 3

    async def test_a_lease_that_ended_counts_as_a_restart(self, store: SqlStore) -> None:
        first = await leased(store)
        assert await store.queue.lease(1, lease_s=60, now=NOW + 59.9) == []
        (second,) = await store.queue.lease(1, lease_s=60, now=NOW + 60)
        assert (second.task_id, second.attempt, second.restarts) == (first.task_id, 1, 1)
        assert second.token != first.token
        assert (await known(store, first.task_id)).started_at == NOW

    async def test_a_prolonged_lease_is_not_handed_out(self, store: SqlStore) -> None:
        lease = await leased(store)
        assert await store.queue.extend(lease, lease_s=120, now=NOW, progress=0.5)
        assert await store.queue.extend(lease, lease_s=120, now=NOW, progress=None)
        assert await store.queue.lease(1, lease_s=60, now=NOW + 119) == []
        assert (await known(store, lease.task_id)).progress == 0.5

    async def test_only_a_running_attempt_waits_for_memory(self, store: SqlStore) -> None:
        lease = await leased(store)
        note = {"now": NOW, "progress": None, "note": WAITS_FOR_MEMORY}
        assert await store.queue.extend(lease, lease_s=60, **note)
        assert (await known(store, lease.task_id)).waits_for_memory
        jobs = await store.jobs_of([lease.task_id])
        assert jobs[lease.task_id].note == "waits for memory"
        (again,) = await store.queue.lease(1, lease_s=60, now=NOW + 60)
        assert not (await known(store, lease.task_id)).waits_for_memory
        assert await store.queue.extend(again, lease_s=60, **note)
        assert await store.queue.complete(again, RESULT, expires_at=NOW + 99, now=NOW)
        assert not (await known(store, lease.task_id)).waits_for_memory

    async def test_at_a_start_every_leased_task_is_due(self, store: SqlStore) -> None:
        lease = await leased(store)
        await store.queue.retry(
            await leased(store, 2), delay_s=50, now=NOW, costs_attempt=True
        )  # waits without a lease
        assert await store.queue.recover(now=NOW + 1) == 1
        (again,) = await store.queue.lease(9, lease_s=60, now=NOW + 1)
        assert (again.task_id, again.attempt, again.restarts) == (lease.task_id, 1, 1)
        assert not await store.queue.complete(lease, RESULT, expires_at=NOW + 9, now=NOW + 1)

    async def test_the_next_due_is_the_earliest_of_what_waits(self, store: SqlStore) -> None:
        assert await store.queue.next_due(now=NOW) is None
        await reserved(store)
        assert await store.queue.next_due(now=NOW) is None
        lease = await leased(store)
        assert await store.queue.next_due(now=NOW) == NOW + 60
        await store.queue.retry(lease, delay_s=5, now=NOW, costs_attempt=True)
        assert await store.queue.next_due(now=NOW) == NOW + 5
        (lease,) = await store.queue.lease(1, lease_s=60, now=NOW + 5)
        await store.queue.complete(lease, RESULT, expires_at=NOW + 99, now=NOW + 6)
        assert await store.queue.next_due(now=NOW) is None

    # -- results

    async def test_a_result_is_seen_once_it_is_written(self, store: SqlStore) -> None:
        lease = await leased(store)
        assert await store.queue.complete(lease, RESULT, expires_at=NOW + 99, now=NOW + 1)
        task = await known(store, lease.task_id)
        assert (task.status, task.result, task.is_done) == (TaskStatus.COMPLETED, RESULT, True)
        assert (task.completed_at, task.expires_at) == (NOW + 1, NOW + 99)
        assert (task.refund, task.payment.state) == (None, PaymentState.SETTLED)

    async def test_a_repeated_result_is_stored_once(self, store: SqlStore) -> None:
        """As after a COMMIT whose response was lost: the first one has been stored."""
        lease = await leased(store)
        result = attrs.evolve(RESULT, text="é" * 100_000)
        for later in (1, 9):
            assert await store.queue.complete(
                lease, result, expires_at=NOW + 99 + later, now=NOW + later
            )
        task = await known(store, lease.task_id)
        assert (task.completed_at, task.expires_at) == (NOW + 1, NOW + 100)

    async def test_another_result_of_a_completed_task_is_refused(self, store: SqlStore) -> None:
        lease = await leased(store)
        assert await store.queue.complete(lease, RESULT, expires_at=NOW + 99, now=NOW + 1)
        for other in (
            attrs.evolve(RESULT, text="# Another"),
            attrs.evolve(RESULT, outputs=(attrs.evolve(RESULT.outputs[0], key="2/0.png"),)),
        ):
            assert not await store.queue.complete(lease, other, expires_at=NOW + 99, now=NOW + 2)
        assert not await store.queue.fail(lease, details="x", error="x", now=NOW + 3)
        assert (await known(store, lease.task_id)).result == RESULT

    async def test_a_long_text_lies_apart_from_the_row(self, store: SqlStore) -> None:
        lease = await leased(store)
        text = 'a"\n\0é😀' * 20_000
        result = attrs.evolve(RESULT, text=text)
        assert await store.queue.complete(lease, result, expires_at=NOW + 99, now=NOW + 1)
        task = await known(store, lease.task_id)
        assert task.result is not None
        described = task.result.long_text
        assert described is not None
        assert (task.result.outputs, task.result.text) == (RESULT.outputs, None)
        parts = [
            await store.text_part(lease.task_id, number) or b"" for number in range(described.parts)
        ]
        assert json.loads(b'"%b"' % b"".join(parts)) == text
        assert (described.chars, described.json_bytes) == (len(text), sum(map(len, parts)))
        assert max(map(len, parts)) <= 400_000
        assert await store.text_part(lease.task_id, described.parts) is None
        # A repeat after a lost response changes nothing, nor does an attempt without its lease.
        assert await store.queue.complete(lease, result, expires_at=NOW + 99, now=NOW + 2)
        other = attrs.evolve(result, text="other")
        assert not await store.queue.complete(lease, other, expires_at=NOW + 99, now=NOW + 2)
        assert await known(store, lease.task_id) == task

    async def test_a_failure_is_money_owed(self, store: SqlStore) -> None:
        await store.accept_direct(new_task(), tx_hash(1), [transfer(units=30_000)], None)
        (lease,) = await store.queue.lease(1, lease_s=60, now=NOW)
        assert await store.queue.fail(lease, details="timed_out", error="Too slow.", now=NOW + 1)
        task = await known(store, lease.task_id)
        assert (task.status, task.code) == (TaskStatus.FAILED, "GENERATION_FAILED")
        assert (task.error, task.details) == ("Too slow.", "timed_out")
        assert task.payment.state is PaymentState.REFUND_DUE
        assert task.refund is not None
        assert (task.refund.amount_units, task.refund.tx_hash) == (30_000, None)  # what was paid

    async def test_an_end_is_final(self, store: SqlStore) -> None:
        lease = await leased(store)
        await store.queue.complete(lease, RESULT, expires_at=NOW + 99, now=NOW)
        assert not await store.queue.fail(lease, details="x", error="x", now=NOW)
        other = attrs.evolve(RESULT, text="other")
        assert not await store.queue.complete(lease, other, expires_at=NOW + 99, now=NOW)
        assert not await store.queue.retry(lease, delay_s=0, now=NOW, costs_attempt=True)
        assert not await store.queue.extend(lease, lease_s=120, now=NOW, progress=0.1)
        assert await store.queue.recover(now=NOW) == 0
        assert await store.queue.lease(1, lease_s=60, now=NOW + 10**6) == []
        task = await known(store, lease.task_id)
        assert (task.status, task.refund) == (TaskStatus.COMPLETED, None)

    async def test_who_lost_the_lease_changes_nothing(self, store: SqlStore) -> None:
        lost = await leased(store)
        (held,) = await store.queue.lease(1, lease_s=60, now=NOW + 61)
        assert not await store.queue.complete(lost, RESULT, expires_at=NOW + 99, now=NOW + 62)
        assert not await store.queue.fail(lost, details="x", error="x", now=NOW + 62)
        assert not await store.queue.retry(lost, delay_s=62, now=NOW, costs_attempt=False)
        assert not await store.queue.extend(lost, lease_s=999, now=NOW, progress=0.9)
        task = await known(store, lost.task_id)
        assert (task.status, task.attempt, task.progress) == (TaskStatus.PROCESSING, 1, None)
        assert await store.queue.complete(held, RESULT, expires_at=NOW + 99, now=NOW + 63)

    async def test_a_result_and_a_failure_at_once_have_one_winner(self, store: SqlStore) -> None:
        lease = await leased(store)
        outcomes = await asyncio.gather(
            store.queue.fail(lease, details="x", error="x", now=NOW),
            store.queue.complete(lease, RESULT, expires_at=NOW + 99, now=NOW),
        )
        assert sorted(outcomes) == [False, True]

    @pytest.mark.parametrize(("costs_attempt", "attempt"), [(True, 2), (False, 1)])
    async def test_a_retry_waits_and_may_cost_an_attempt(
        self,
        store: SqlStore,
        costs_attempt: bool,
        attempt: int,
    ) -> None:
        lease = await leased(store)
        await store.queue.extend(lease, lease_s=60, now=NOW, progress=0.5)
        assert await store.queue.retry(lease, delay_s=5, now=NOW, costs_attempt=costs_attempt)
        task = await known(store, lease.task_id)
        assert (task.status, task.progress) == (TaskStatus.PROCESSING, None)
        assert await store.queue.lease(1, lease_s=60, now=NOW + 4.9) == []
        assert not await store.queue.complete(lease, RESULT, expires_at=NOW + 99, now=NOW)
        (again,) = await store.queue.lease(1, lease_s=60, now=NOW + 5)
        assert again.attempt == attempt

    # -- retention

    async def test_outputs_are_listed_until_they_are_forgotten(self, store: SqlStore) -> None:
        for tx, expires_at in ((1, NOW + 30), (2, NOW + 10), (3, NOW + 20)):
            lease = await leased(store, tx, id=f"kept-{tx}")
            await store.queue.complete(lease, RESULT, expires_at=expires_at, now=NOW)
        assert await store.expired_outputs(now=NOW + 9, limit=9) == []
        found = await store.expired_outputs(now=NOW + 20, limit=9)
        assert found == [("kept-2", list(RESULT.outputs)), ("kept-3", list(RESULT.outputs))]
        assert len(await store.expired_outputs(now=NOW + 30, limit=1)) == 1
        await store.forget_outputs(["kept-2", "kept-3"])
        assert [task_id for task_id, _ in await store.expired_outputs(now=NOW + 99, limit=9)] == [
            "kept-1"
        ]
        task = await known(store, "kept-2")
        assert (task.outputs_gone, task.status) == (True, TaskStatus.COMPLETED)
        assert not (await known(store, "kept-1")).outputs_gone

    async def test_what_tasks_show_is_known_by_its_key(self, store: SqlStore) -> None:
        for tx in (1, 2, 3):
            lease = await leased(store, tx, id=f"kept-{tx}")
            if tx == 3:  # still at work: nothing of it is shown
                continue
            output = attrs.evolve(RESULT.outputs[0], key=f"{tx}/0.png")
            result = attrs.evolve(RESULT, outputs=(output, attrs.evolve(output, key=f"{tx}/1.md")))
            await store.queue.complete(lease, result, expires_at=NOW + 9, now=NOW)
        await store.forget_outputs(["kept-2"])
        asked = ["kept-1", "kept-2", "kept-3", "nobody's", "' OR 1"]
        assert await store.shown_outputs(asked) == {"1/0.png", "1/1.md"}
        assert await store.shown_outputs([]) == set()

    # -- counts and logins

    async def test_what_is_there_is_counted(self, store: SqlStore) -> None:
        assert await store.counts() == {"tasks": {}, "payments": {}}
        assert await store.queue.depth() == {}
        await reserved(store, 1)
        await settling(store, 2)
        lease = await leased(store, 1)
        await store.queue.fail(lease, details="x", error="x", now=NOW)
        await leased(store, 2)
        await queued(store, 3)
        assert await store.counts() == {
            "tasks": {"held": 2, "failed": 1, "processing": 1, "queued": 1},
            "payments": {"reserved": 1, "settling": 1, "refund_due": 1, "settled": 2},
        }
        assert await store.queue.depth() == {"held": 2, "queued": 1, "processing": 1}

    async def test_an_unknown_task_is_none(self, store: SqlStore) -> None:
        assert await store.task("nothing") is None

    async def test_it_answers(self, store: SqlStore) -> None:
        await store.ping()

    async def test_a_stored_value_is_made_once(self, store: SqlStore) -> None:
        assert await store.known_meta("secret") is None
        made = itertools.count()
        values = await asyncio.gather(
            *(store.meta("secret", lambda: f"made {next(made)}") for _ in range(50))
        )
        assert len(set(values)) == 1
        assert await store.known_meta("secret") == values[0]
        assert await store.meta("secret", lambda: "another") == values[0]

    async def test_login_attempts_are_counted_in_a_moving_window(self, store: SqlStore) -> None:
        async def attempt(at: float, address: str = "a") -> float:
            return await store.count_attempt(address, limit=3, window_s=100, now=NOW + at)

        assert [await attempt(at) for at in (0, 40, 50)] == [0, 0, 0]
        assert await attempt(60) == 40
        assert await attempt(60, "b") == 0
        assert await attempt(99.5) == 0.5
        assert await attempt(100) == 0  # waiting as long as told suffices
        assert await attempt(101) == 39

    async def test_login_attempts_are_counted_over_all_addresses(self, store: SqlStore) -> None:
        async def attempt(at: float, address: str, most: int | None = 3) -> float:
            total = (most, 100)
            return await store.count_attempt(
                address, limit=2, window_s=10, total=total, now=NOW + at
            )

        assert [await attempt(at, f"a{at}") for at in (0, 40, 50)] == [0, 0, 0]
        assert await attempt(60, "b") == 40
        assert await attempt(60, "known", None) == 0  # bound by its own limit alone
        assert await attempt(60, "known", None) == 0
        assert await attempt(61, "known", None) == 9
        assert await attempt(160, "b") == 0

    async def test_of_fifty_logins_at_once_no_more_than_the_limit_pass(
        self, store: SqlStore
    ) -> None:
        waits = await asyncio.gather(
            *(store.count_attempt("a", limit=5, window_s=300, now=NOW) for _ in range(50))
        )
        assert sum(wait == 0 for wait in waits) == 5
