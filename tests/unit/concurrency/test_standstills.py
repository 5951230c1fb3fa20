"""Standstills: what counts as one, and sales that wait until the process has recovered."""

import asyncio

import pytest
import structlog

from gateway.concurrency.standstills import BEAT_S, Standstills, never
from gateway.errors import Resuming


class World:
    """Both clocks of a machine, and a recovery that ends when the test lets it."""

    def __init__(self) -> None:
        self.wall_at, self.monotonic_at = 1_000_000.0, 50.0
        self.recoveries = 0
        self.failed: list[str] = []
        self.may_recover = asyncio.Event()

    def pass_s(self, wall: float, monotonic: float) -> None:
        self.wall_at += wall
        self.monotonic_at += monotonic

    async def recover(self) -> list[str]:
        self.recoveries += 1
        await self.may_recover.wait()
        return self.failed


@pytest.fixture
async def world():
    return World()


@pytest.fixture
async def standstills(world):
    made = Standstills(
        now=lambda: world.wall_at,
        wall=lambda: world.wall_at,
        monotonic=lambda: world.monotonic_at,
        recover=world.recover,
        wait_s=0.01,
    )
    yield made
    await made.close()


@pytest.mark.parametrize(
    ("wall", "monotonic"),
    [(3600, 3600), (3600, 0), (3600, BEAT_S), (-3600, BEAT_S), (20, 20), (-20, 0)],
    ids=["stopped", "suspended", "clock set", "clock set back", "briefly", "back briefly"],
)
async def test_a_standstill_or_a_jump_of_the_clock_begins_one_recovery(
    world, standstills, wall, monotonic
):
    world.pass_s(wall, monotonic)
    for _ in range(3):
        await standstills.beat()
    assert standstills.count == 1
    with pytest.raises(Resuming):
        await standstills.wait()
    world.may_recover.set()
    await asyncio.sleep(0)
    assert await standstills.wait() == 1
    assert world.recoveries == 1


@pytest.mark.parametrize(
    ("wall", "monotonic"), [(BEAT_S, BEAT_S), (6, 6), (1, BEAT_S), (BEAT_S + 3, BEAT_S), (0, 0)]
)
async def test_a_late_beat_and_a_clock_that_is_corrected_a_little_are_none(
    world, standstills, wall, monotonic
):
    for _ in range(20):
        world.pass_s(wall, monotonic)
        await standstills.beat()
        assert await standstills.wait() == 0
    assert world.recoveries == 0


async def test_the_start_of_a_gateway_is_no_standstill(world, standstills):
    world.pass_s(60, 60)
    await standstills.begin()
    assert await standstills.wait() == 0


async def test_a_sale_waits_for_the_recovery(world, standstills):
    standstills.wait_s = 60
    world.pass_s(3600, 3600)
    sale = asyncio.create_task(standstills.wait())
    await asyncio.sleep(0.01)
    assert (world.recoveries, sale.done()) == (1, False)
    world.may_recover.set()
    assert await sale == 1


async def test_a_standstill_during_the_recovery_repeats_it(world, standstills):
    world.pass_s(3600, 3600)
    standstills.notice()
    await asyncio.sleep(0)
    world.pass_s(3600, 0)
    standstills.notice()
    world.may_recover.set()
    await asyncio.sleep(0.01)
    assert (await standstills.wait(), world.recoveries) == (2, 2)


async def test_a_block_from_the_future_shows_that_the_clock_lags(world, standstills):
    for seen_at in (world.wall_at - 3600, world.wall_at, world.wall_at + 30):
        standstills.doubt(seen_at)
    assert standstills.has_recovered()
    standstills.doubt(world.wall_at + 3600)
    standstills.doubt(world.wall_at + 3600)
    assert (standstills.has_recovered(), standstills.count) == (False, 1)


async def test_a_recovery_that_fails_holds_no_sale_for_ever(world, standstills):
    async def fails():
        raise RuntimeError("a bug")

    standstills.recover = fails
    world.pass_s(3600, 3600)
    standstills.notice()
    with structlog.testing.capture_logs() as lines:
        assert await standstills.wait() == 1
    assert [line["event"] for line in lines] == ["process.not_recovered"]
    await standstills.close()


@pytest.mark.parametrize(
    ("failed", "event"), [([], "process.recovered"), (["payments"], "process.not_recovered")]
)
async def test_the_log_names_the_parts_that_have_not_recovered(world, standstills, failed, event):
    world.failed = failed
    world.may_recover.set()
    world.pass_s(3600, 3600)
    with structlog.testing.capture_logs() as lines:
        await standstills.wait()
    assert [(line["event"], line.get("failed", [])) for line in lines] == [
        ("process.stood_still", []),
        (event, failed),
    ]


async def test_a_check_is_repeated_if_the_process_stood_still_meanwhile(world, standstills):
    world.may_recover.set()
    gaps, steps = [3600, 3600, 0], []

    async def check():
        steps.append("check")
        world.pass_s(gaps[0], gaps[0])
        return gaps.pop(0)

    async def again():
        steps.append("again")

    standstills.wait_s = 60
    assert await standstills.guard(check, before_again=again) == 0
    assert steps == ["check", "again", "check", "again", "check"]
    gaps[:] = [3600] * 9
    with pytest.raises(Resuming):
        await standstills.guard(check)
    assert len(gaps) == 6


async def test_payments_without_a_gateway_notice_none():
    nothing = never()
    nothing.doubt(4e9)
    assert await nothing.wait() == 0
