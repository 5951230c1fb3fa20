"""Periodic work goes on after any error of the work."""

import asyncio

import pytest
import structlog

from gateway.concurrency.periodic import Periodic
from tests.patience import until


@pytest.mark.parametrize("error", [RuntimeError("a bug"), asyncio.CancelledError(), SystemExit(1)])
async def test_the_work_goes_on_after_an_error_of_its_own(error):
    runs = []

    async def work():
        runs.append(error)
        raise error

    periodic = Periodic("sums", work, 0.001)
    with structlog.testing.capture_logs() as lines:
        periodic.start()
        await until(lambda: len(runs) > 1)
        await periodic.stop()
    assert {(line["event"], line["sweep"]) for line in lines} == {("sweep.failed", "sums")}


async def test_a_stop_in_the_middle_of_the_work_ends_it():
    runs = []

    async def work():
        runs.append(0)
        await asyncio.sleep(3600)

    periodic = Periodic("sums", work, 0.001)
    periodic.start()
    await until(lambda: runs)
    with structlog.testing.capture_logs() as lines:
        await periodic.stop()
    assert (len(runs), lines) == (1, [])
