"""An attempt whose end cannot be written is an attempt, and no death of the gateway."""

import pytest

from gateway import SubmitUncertain, Transient
from gateway.catalog.notes import note_billable
from tests.unit.tasks.engine_shop import PAPER, PlainApi, opened


def fail_first(shop, name, count):
    """Let the first `count` calls of a method of the queue fail."""
    write = getattr(shop.store.queue, name)
    calls = []

    async def fails(*args, **kwargs):
        calls.append(name)
        if len(calls) <= count:
            raise OSError("the database is away")
        return await write(*args, **kwargs)

    setattr(shop.store.queue, name, fails)


async def sent_uncertain(request, job):
    note_billable()
    raise SubmitUncertain("no answer")


@pytest.mark.parametrize(
    ("name", "api", "attempts", "submits"),
    [
        ("begin_submit", PlainApi(), 2, 1),
        ("retry", PlainApi(Transient("503"), idempotent_submit=True), 2, 2),
    ],
    ids=["a mark", "a retry"],
)
async def test_the_next_attempt_comes_at_once_and_is_no_restart(
    tmp_path, clock, name, api, attempts, submits
):
    async with opened(tmp_path, api, clock, start=False) as shop:
        fail_first(shop, name, 1)
        shop.pool.start()
        task = await shop.ended(await shop.accept(PAPER))
        row = await shop.row(task.id)
    assert (task.status, task.attempt, row["restarts"]) == ("completed", attempts, 0)
    assert len(api.submits) == submits


async def test_what_may_be_billed_is_not_sent_again(tmp_path, clock):
    api = PlainApi(sent_uncertain)
    async with opened(tmp_path, api, clock, start=False) as shop:
        fail_first(shop, "fail", 1)
        shop.pool.start()
        task = await shop.ended(await shop.accept(PAPER))
        assert "could not write" in (await shop.row(task.id))["reason"]
    assert (task.details, task.payment.state) == ("uncertain_submit", "refund_due")
    assert len(api.submits) == 1


async def test_if_no_mark_can_be_written_the_task_fails_after_four_attempts(tmp_path, clock):
    api = PlainApi()
    async with opened(tmp_path, api, clock, start=False) as shop:
        fail_first(shop, "begin_submit", 99)
        shop.pool.start()
        task = await shop.ended(await shop.accept(PAPER))
        assert (await shop.row(task.id))["restarts"] == 0
    assert (task.status, task.attempt, task.payment.state) == ("failed", 4, "refund_due")
    assert "could not finish" in task.error
    assert api.submits == []
