"""Contract of every store: pending tasks, payments and refunds."""

import pytest

from gateway.domain import Decision, Payment
from gateway.store import SqlStore
from gateway_testing.facts import NOW, RESULT, leased, reserved, settling
from tests.store_contract.events import begin_refund


async def find(
    store: SqlStore, *, sends: bool = True, automatically: bool = True, after_s: float = 0.0
) -> list[str]:
    """Return the pending kinds of work with these settings."""
    return await store.find_pending(
        now=NOW + after_s, sends_refunds=sends, refunds_automatically=automatically
    )


async def _fail(store: SqlStore, **fields: object) -> tuple[str, Payment]:
    lease = await leased(store, **fields)
    assert await store.queue.fail(lease, details="x", error="x", now=NOW)
    task = await store.task(lease.task_id)
    assert task is not None
    return task.id, task.payment


class PendingContract:
    """Pending tasks, payments and refunds."""

    async def test_an_open_payment_and_its_task_are_pending(self, store: SqlStore) -> None:
        assert await find(store) == []
        task = await reserved(store)
        assert await find(store) == ["tasks", "payments"]
        await store.release(task.payment.id, now=NOW)
        assert await find(store) == []
        await settling(store, 2)
        assert await find(store) == ["tasks", "payments"]

    async def test_a_task_is_pending_until_it_ends(self, store: SqlStore) -> None:
        lease = await leased(store)
        assert await find(store) == ["tasks"]
        await store.queue.complete(lease, RESULT, expires_at=NOW + 60, now=NOW)
        assert await find(store) == []

    @pytest.mark.parametrize("automatically", [True, False])
    async def test_a_refund_is_pending_if_the_gateway_sends_it(
        self, store: SqlStore, automatically: bool
    ) -> None:
        task_id, payment = await _fail(store)
        case = await store.refunds.case(task_id)
        assert case is not None
        is_automatic = automatically and case.payer_proven
        expected = ["refunds"] if is_automatic else []
        assert await find(store, automatically=automatically) == expected
        assert await find(store, sends=False, automatically=automatically) == []
        await store.refunds.decide(task_id, Decision.APPROVED, recipient=None, note="", now=NOW)
        assert await find(store, automatically=automatically) == ["refunds"]
        await store.refunds.note_problem(payment.id, "The refund key holds no USDC.")
        assert await find(store, automatically=automatically, after_s=299) == ["refunds"]
        assert await find(store, automatically=automatically, after_s=301) == []
        await begin_refund(store, task_id)
        assert await find(store, automatically=automatically) == ["refunds"]
        await store.refunds.end(payment.id, "0x" + "ab" * 32, now=NOW)
        assert await find(store, automatically=automatically) == []

    async def test_an_event_waits_for_readers_of_this_name_only(self, store: SqlStore) -> None:
        assert not await store.events.has_any([])
        assert not await store.events.has_any(["reader"])
