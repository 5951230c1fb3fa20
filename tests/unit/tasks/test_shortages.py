"""Shortages of this machine are retried here: they blame no provider, and buy nothing twice."""

import errno

import pytest

from gateway import Link, Result, SubmitUncertain, Transient
from gateway.catalog.notes import note_billable
from gateway.sandbox import SandboxLost
from gateway.tasks.shortage import find_shortage
from tests.patience import until
from tests.unit.tasks.engine_shop import PAPER, PICTURE, SHORT, TEXT, PlainApi, opened

HOUR_S = 3600


def not_sent(number=errno.EMFILE):
    """Return the error of a request for which no connection could be opened, as `Outbound`'s."""
    try:
        try:
            raise OSError(number, "as the system says")  # noqa: TRY301 - a chain
        except OSError as error:
            raise ConnectionError("All connection attempts failed") from error
    except ConnectionError:
        try:
            raise Transient("No answer: ConnectError") from None  # noqa: TRY301 - a chain
        except Transient as error:
            return error


def lost(*, has_begun):
    error = Transient("The document parser: it is lost")
    error.__cause__ = SandboxLost("lost", has_begun=has_begun)
    return error


class ShortPictures:
    """Checks of pictures that fail for want of descriptors, then succeed.

    With `has_begun`, a process that had started is ended each time.
    """

    def __init__(self, failures, *, has_begun=False):
        self.failures = failures
        self.has_begun = has_begun
        self.checks = 0

    async def check(self, result, wanted):
        self.checks += 1
        self.failures -= 1
        if self.failures >= 0:
            error = SandboxLost("There is no answer.", has_begun=self.has_begun)
            cause = None if self.has_begun else OSError(errno.EMFILE, "Too many open files")
            raise error from cause
        return result

    def close(self):
        pass


class ShortLinks:
    def __init__(self, failures):
        self.failures = failures

    async def download(self, url, *, timeout_s):
        self.failures -= 1
        if self.failures >= 0:
            raise not_sent()
        return b"downloaded"

    async def close(self):
        pass


@pytest.mark.parametrize(
    ("error", "lacked"),
    [
        (not_sent(), "file descriptors"),
        (not_sent(errno.ENFILE), "file descriptors"),
        (not_sent(errno.ENOMEM), "memory"),
        (OSError(errno.ENOSPC, "full"), "disk space"),
        (ExceptionGroup("two", [ValueError(), OSError(errno.EMFILE, "")]), "file descriptors"),
        (lost(has_begun=False), "processes"),
        (lost(has_begun=True), "memory or time"),
        (not_sent(errno.ECONNREFUSED), None),
        (TimeoutError(), None),
        (Transient("500"), None),
        (MemoryError(), None),
    ],
    ids=repr,
)
def test_a_shortage_is_found_behind_the_error_that_it_caused(error, lacked):
    assert find_shortage(error) == lacked


def test_errors_that_cause_each_other_end_the_search():
    first, second = ValueError(), ValueError()
    first.__cause__, second.__context__ = second, first
    assert find_shortage(first) is None


@pytest.mark.parametrize("is_idempotent", [False, True])
@pytest.mark.parametrize("error", [not_sent(), lost(has_begun=False)], ids=["sent", "lost"])
async def test_a_request_that_was_never_sent_costs_no_attempt(
    tmp_path, clock, is_idempotent, error
):
    api = PlainApi(*[error] * 12, idempotent_submit=is_idempotent)
    async with opened(tmp_path, api, clock) as shop:
        task = await shop.ended(await shop.accept(PAPER))
        assert (task.status, task.attempt) == ("completed", 1)
        assert len(api.submits) == 13
        assert not shop.circuit.is_open
        (condition,) = await shop.pool.resources.shortages.find_conditions()
        assert "short of" in condition.title
        clock.offset_s += HOUR_S
        assert await shop.pool.resources.shortages.find_conditions() == []


async def test_a_shortage_without_end_fails_the_task_in_time_and_no_circuit(tmp_path, clock):
    api = PlainApi(*[not_sent()] * 10_000, idempotent_submit=True)
    async with opened(tmp_path, api, clock) as shop:
        tasks = await shop.sold(3)
        await until(lambda: len(api.submits) > 6)
        clock.offset_s += HOUR_S
        shop.pool.wake()
        ended = [await shop.ended(one) for one in tasks]
        assert not shop.circuit.is_open
    assert {(one.status, one.details) for one in ended} == {("failed", "provider_error")}
    assert "The gateway could not work for too long" in ended[0].error


async def test_a_task_that_waited_long_for_its_vendor_survives_a_shortage(tmp_path, clock):
    api = PlainApi(not_sent(), not_sent())
    async with opened(tmp_path, api, clock, start=False) as shop:
        task_id = await shop.accept(PAPER)
        (lease,) = await shop.store.queue.lease(1, lease_s=60, now=clock())
        await shop.store.queue.retry(lease, delay_s=0, now=clock(), costs_attempt=False)
        clock.offset_s += 0.7 * HOUR_S
        shop.pool.start()
        task = await shop.ended(task_id)
    assert (task.status, task.attempt, len(api.submits)) == ("completed", 1, 3)


async def test_a_shortage_beyond_half_an_hour_costs_an_attempt(tmp_path, clock):
    async def short(request, job):
        clock.offset_s += 0.6 * HOUR_S
        raise not_sent()

    api = PlainApi(not_sent(), short)
    async with opened(tmp_path, api, clock) as shop:
        task = await shop.ended(await shop.accept(PAPER))
    assert (task.status, task.attempt, len(api.submits)) == ("completed", 2, 3)


async def test_what_may_be_billed_is_not_sent_again_for_any_shortage(tmp_path, clock):
    async def sent(request, job):
        note_billable()
        raise SubmitUncertain("Sent, and no answer came back") from OSError(errno.ENOMEM, "")

    api = PlainApi(sent, TEXT)
    async with opened(tmp_path, api, clock) as shop:
        task = await shop.ended(await shop.accept(PAPER))
    assert (task.status, task.details, len(api.submits)) == ("failed", "uncertain_submit", 1)


async def test_a_file_whose_process_is_always_ended_uses_its_attempts_up(tmp_path, clock):
    api = PlainApi(*[lost(has_begun=True)] * 24, idempotent_submit=True)
    async with opened(tmp_path, api, clock) as shop:
        tasks = [await shop.ended(await shop.accept(PAPER)) for _ in range(6)]
        assert {(task.status, task.attempt) for task in tasks} == {("failed", 4)}
        assert not shop.circuit.is_open
        assert (await shop.ended(await shop.accept(PAPER))).status == "completed"


@pytest.mark.parametrize("is_idempotent", [False, True])
async def test_a_result_waits_here_longer_than_for_other_errors(tmp_path, clock, is_idempotent):
    api = PlainApi(*[PICTURE] * 5, idempotent_submit=is_idempotent)
    async with opened(tmp_path, api, clock) as shop:
        shop.pool.resources.results.close()
        shop.pool.resources.results.pictures = ShortPictures(9)
        task = await shop.ended(await shop.accept())
        assert not shop.circuit.is_open
    assert (task.status, task.attempt, len(api.submits)) == ("completed", 1, 1)


async def test_a_picture_whose_process_is_always_ended_is_not_checked_for_long(tmp_path, clock):
    pictures = ShortPictures(99, has_begun=True)
    async with opened(tmp_path, PlainApi(PICTURE), clock) as shop:
        shop.pool.resources.results.close()
        shop.pool.resources.results.pictures = pictures
        task = await shop.ended(await shop.accept())
        assert not shop.circuit.is_open
    assert (task.status, task.details) == ("failed", "provider_error")
    assert pictures.checks == 1 + len(SHORT.write_pauses_s)


async def test_a_download_waits_for_a_descriptor(tmp_path, clock):
    linked = Result(outputs=(Link(url="https://files.test/1.txt", media_type="text/plain"),))
    api = PlainApi(linked)
    async with opened(tmp_path, api, clock, links=ShortLinks(6)) as shop:
        task = await shop.ended(await shop.accept(PAPER))
    assert (task.status, len(api.submits)) == ("completed", 1)
