"""A task's note and timeout while its calls wait for this machine's memory."""

import asyncio
from types import SimpleNamespace

import pytest

from gateway.domain import WAITS_FOR_MEMORY
from gateway.tasks.job import AttemptJob


@pytest.fixture
def job():
    lease = SimpleNamespace(task_id="1", attempt=1)
    return AttemptJob(lease=lease, endpoint=None, resources=None, sent_at=0.0, is_marked=False)


async def test_the_providers_note_returns_once_no_call_waits(job):
    await job.progress(0.1, "1 of 3 pages read")
    job.note_wait(1)
    job.note_wait(1)
    assert job.take_progress() == (0.1, WAITS_FOR_MEMORY)
    job.note_wait(-1)
    await job.progress(0.4, "2 of 3 pages read")
    assert job.take_progress() == (0.4, None)
    job.note_wait(-1)
    assert job.take_progress() == (None, "2 of 3 pages read")


async def test_the_note_of_a_task_that_no_longer_waits_is_cleared(job):
    job.note_wait(1)
    job.note_wait(-1)
    assert job.take_progress() == (None, "")


async def test_a_providers_own_note_is_never_the_gateways(job):
    await job.progress(0.1, WAITS_FOR_MEMORY)
    assert job.take_progress() == (0.1, "waits for memory")


def test_progress_that_could_not_be_stored_is_kept_unless_there_is_newer(job):
    job.show(0.1, "1 of 3")
    taken = job.take_progress()
    job.show(None, "2 of 3")
    job.return_progress(*taken)
    assert job.take_progress() == (0.1, "2 of 3")


async def test_the_timeout_of_a_submit_stands_still_meanwhile(job):
    async with asyncio.timeout(1000) as job.limit:
        await asyncio.sleep(0)
        job.note_wait(1)
        job.note_wait(1)
        job.note_wait(-1)
        assert job.limit.when() is None
        job.note_wait(-1)
        assert 0 < job.limit.when() - asyncio.get_running_loop().time() <= 1000


async def test_a_timeout_that_has_passed_is_left_alone(job):
    async def submit():
        async with asyncio.timeout(0) as job.limit:
            try:
                await asyncio.Event().wait()
            finally:
                job.note_wait(1)
                job.note_wait(-1)

    with pytest.raises(TimeoutError):
        await submit()
