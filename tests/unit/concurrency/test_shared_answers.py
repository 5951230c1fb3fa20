"""Shared answers: one call at a time, and a caller that leaves does not affect the others."""

import asyncio

import pytest

from gateway.concurrency.shared_answers import SharedAnswer, SharedAnswers


class Clock:
    """A clock set by hand."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


class Source:
    """Counts its calls, and returns their numbers once allowed."""

    def __init__(self) -> None:
        self.questions = 0
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.error: Exception | None = None

    async def ask(self) -> int:
        self.questions += 1
        number = self.questions
        self.asked.set()
        await self.may_answer.wait()
        if self.error is not None:
            raise self.error
        return number


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def source() -> Source:
    return Source()


async def _callers(shared: SharedAnswer, source: Source, number: int) -> list[asyncio.Task]:
    """Return `number` callers that wait for one call."""
    callers = [asyncio.create_task(shared.get(source.ask)) for _ in range(number)]
    await source.asked.wait()
    await asyncio.sleep(0)
    return callers


async def test_callers_that_ask_at_once_share_one_question(clock, source):
    callers = await _callers(SharedAnswer(clock, ttl_s=5.0), source, 20)
    source.may_answer.set()
    assert await asyncio.gather(*callers) == [1] * 20
    assert source.questions == 1


async def test_an_answer_is_kept_for_its_time_and_no_longer(clock, source):
    shared = SharedAnswer(clock, ttl_s=5.0)
    source.may_answer.set()
    assert await shared.get(source.ask) == 1
    clock.at += 4.9
    assert await shared.get(source.ask) == 1
    clock.at += 0.2
    assert await shared.get(source.ask) == 2


async def test_a_clock_that_was_put_back_keeps_nothing_for_ever(clock, source):
    shared = SharedAnswer(clock, ttl_s=5.0)
    source.may_answer.set()
    await shared.get(source.ask)
    clock.at -= 3600
    assert await shared.get(source.ask) == 2


async def test_an_answer_of_none_is_kept_as_well(clock):
    asked = 0

    async def ask() -> None:
        nonlocal asked
        asked += 1

    shared = SharedAnswer(clock, ttl_s=5.0)
    assert await shared.get(ask) is None
    assert await shared.get(ask) is None
    assert asked == 1


async def test_a_caller_who_leaves_takes_the_answer_from_nobody(clock, source):
    callers = await _callers(SharedAnswer(clock, ttl_s=5.0), source, 3)
    callers[0].cancel()
    await asyncio.gather(callers[0], return_exceptions=True)
    source.may_answer.set()
    assert await asyncio.gather(*callers[1:]) == [1, 1]
    assert callers[0].cancelled()


async def test_callers_that_hang_up_start_no_further_question(clock, source):
    shared = SharedAnswer(clock, ttl_s=5.0)
    for _ in range(20):
        (caller,) = await _callers(shared, source, 1)
        caller.cancel()
        await asyncio.gather(caller, return_exceptions=True)
    source.may_answer.set()
    assert await shared.get(source.ask) == 1
    assert source.questions == 1


async def test_an_error_is_told_to_all_who_wait_and_the_next_caller_asks_again(clock, source):
    shared = SharedAnswer(clock, ttl_s=5.0)
    callers = await _callers(shared, source, 3)
    source.error = ConnectionError("silent")
    source.may_answer.set()
    found = await asyncio.gather(*callers, return_exceptions=True)
    assert [str(error) for error in found] == ["silent"] * 3
    source.error = None
    assert await shared.get(source.ask) == 2


async def test_an_old_answer_is_not_given_where_the_next_question_fails(clock, source):
    shared = SharedAnswer(clock, ttl_s=5.0)
    source.may_answer.set()
    await shared.get(source.ask)
    clock.at += 5.0
    source.error = ConnectionError("silent")
    with pytest.raises(ConnectionError):
        await shared.get(source.ask)


async def test_closing_ends_the_question(clock, source):
    shared = SharedAnswer(clock, ttl_s=5.0)
    (caller,) = await _callers(shared, source, 1)
    await shared.close()
    await asyncio.gather(caller, return_exceptions=True)
    assert caller.cancelled()


async def test_each_key_has_an_answer_of_its_own(clock, source):
    shared = SharedAnswers(clock, ttl_s=5.0, most=4)
    source.may_answer.set()
    assert [await shared.get(key, source.ask) for key in "abab"] == [1, 2, 1, 2]


async def test_the_key_that_was_used_longest_ago_is_forgotten_first(clock, source):
    shared = SharedAnswers(clock, ttl_s=5.0, most=2)
    source.may_answer.set()
    assert [await shared.get(key, source.ask) for key in "abacab"] == [1, 2, 1, 3, 1, 4]


@pytest.mark.parametrize("error", [None, RuntimeError("silent")])
async def test_a_caller_in_the_turn_in_which_a_question_ends_asks_anew(clock, error):
    shared = SharedAnswer(clock, ttl_s=0.0)
    is_ending = asyncio.get_running_loop().create_future()

    async def end_now() -> str:
        # Wakes the next caller before the call's own callbacks run.
        is_ending.set_result(None)
        if error is not None:
            raise error
        return "old"

    async def call_then() -> str:
        await is_ending
        return await shared.get(answer)

    async def answer() -> str:
        return "new"

    first, second = await asyncio.gather(shared.get(end_now), call_then(), return_exceptions=True)
    assert (first, second) == (error or "old", "new")


async def test_a_question_that_was_begun_answers_a_later_caller(clock, source):
    shared = SharedAnswer(clock, ttl_s=5.0)
    shared.begin(source.ask)
    await source.asked.wait()
    shared.begin(source.ask)
    source.may_answer.set()
    assert await shared.get(source.ask) == 1
    shared.begin(source.ask)  # the answer is recent
    clock.at += 5.0
    assert await shared.get(source.ask) == 2


async def test_a_caller_asks_again_after_a_begun_question_failed(clock, source):
    shared = SharedAnswer(clock, ttl_s=5.0)
    source.error = ConnectionError()
    source.may_answer.set()
    shared.begin(source.ask)
    await source.asked.wait()
    await asyncio.sleep(0)
    source.error = None
    assert await shared.get(source.ask) == 2
