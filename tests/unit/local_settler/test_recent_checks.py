"""How long a settlement may rely on what was read beside its check."""

import asyncio
import weakref
from types import SimpleNamespace

import pytest

from gateway_local_settler import recent_checks
from gateway_local_settler.recent_checks import (
    FRESH_S,
    KEPT_S,
    Reading,
    RecentChecks,
    begin_age,
)


class Clocks:
    """The time of day, and the loop's steady clock; a test moves each alone."""

    def __init__(self) -> None:
        self.day_s = self.steady_s = 1_000.0

    def time(self) -> float:
        return self.steady_s


@pytest.fixture
def clocks(monkeypatch):
    clocks = Clocks()
    loop_of = SimpleNamespace(get_running_loop=lambda: clocks)
    monkeypatch.setattr(recent_checks, "asyncio", loop_of)
    return clocks


@pytest.fixture
def reading(clocks):
    is_younger = begin_age(lambda: clocks.day_s)
    return Reading(is_code=False, counts={"0xa": 7}, is_younger=is_younger)


def reading_of(age_s: float = 0.0) -> Reading:
    return Reading(is_code=False, counts={}, is_younger=lambda limit_s: age_s < limit_s)


def test_a_count_counts_for_less_than_a_second(reading, clocks):
    assert reading.count_of("0xa") == 7
    clocks.day_s = clocks.steady_s = 1_000.0 + 0.99 * FRESH_S
    assert reading.count_of("0xa") == 7
    clocks.day_s = clocks.steady_s = 1_000.0 + FRESH_S
    assert reading.count_of("0xa") is None


def test_a_second_is_five_blocks_of_base():
    assert FRESH_S <= 1.0


@pytest.mark.parametrize(("day_s", "steady_s"), [(-5.0, 0.5), (0.5, 5.5), (5.0, 0.5)])
def test_one_clock_alone_makes_a_reading_old(reading, clocks, day_s, steady_s):
    """The clock is set back, slewed, or the machine was suspended."""
    clocks.day_s, clocks.steady_s = 1_000.0 + day_s, 1_000.0 + steady_s
    assert reading.count_of("0xa") is None


def test_another_key_has_no_count(reading):
    assert reading.count_of("0xb") is None


def test_a_reading_is_taken_once():
    checks, reading = RecentChecks(), reading_of()
    checks.keep("one", reading)
    assert checks.take("two") is None
    assert checks.take("one") is reading
    assert checks.take("one") is None


def test_the_newest_reading_of_an_authorization_counts():
    checks, newer = RecentChecks(), reading_of()
    checks.keep("one", reading_of())
    checks.keep("one", newer)
    assert checks.take("one") is newer


def test_the_oldest_reading_makes_room(monkeypatch):
    monkeypatch.setattr(recent_checks, "_MOST", 2)
    checks = RecentChecks()
    for name in ("one", "two", "one", "three"):
        checks.keep(name, reading_of())
    assert [checks.take(name) is not None for name in ("one", "two", "three")] == [
        True,
        False,
        True,
    ]


def test_an_old_reading_is_not_taken():
    checks = RecentChecks()
    checks.keep("one", reading_of(age_s=KEPT_S))
    assert checks.take("one") is None


def test_readings_that_no_payment_takes_are_dropped_once_they_are_old(clocks):
    checks, kept = RecentChecks(), []
    for number in range(60):
        reading = Reading(is_code=True, counts={}, is_younger=begin_age(lambda: clocks.day_s))
        checks.keep(number, reading)
        kept.append(weakref.ref(reading))
        del reading
        clocks.day_s, clocks.steady_s = clocks.day_s + 1.0, clocks.steady_s + 1.0
    assert sum(one() is not None for one in kept) <= KEPT_S + 1


async def test_freshness_begins_now():
    assert begin_age(asyncio.get_running_loop().time)(FRESH_S)
