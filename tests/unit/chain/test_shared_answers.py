"""What many callers want to know of the chain is asked once."""

import asyncio

import pytest

from gateway import ChainUnavailable
from gateway.chain.shared_answers import SharedAnswer


class Question:
    """Counts how often it is asked; answers when the test says so."""

    def __init__(self) -> None:
        self.asked = 0
        self.answers: list[asyncio.Future[int]] = []

    async def __call__(self) -> int:
        self.asked += 1
        self.answers.append(asyncio.get_running_loop().create_future())
        return await self.answers[-1]


async def started(shared: SharedAnswer[int], count: int) -> list[asyncio.Task[int]]:
    callers = [asyncio.create_task(shared.get()) for _ in range(count)]
    for _ in range(3):
        await asyncio.sleep(0)
    return callers


async def test_callers_at_once_share_a_question_and_its_answer():
    question = Question()
    shared = SharedAnswer(question, keep_s=0)
    callers = await started(shared, 5)
    question.answers[0].set_result(7)
    assert await asyncio.gather(*callers) == [7] * 5
    assert question.asked == 1


@pytest.mark.parametrize(("keep_s", "expected"), [(0, [7, 8]), (3600, [7, 7])])
async def test_a_later_caller_asks_anew_unless_the_answer_is_kept(keep_s, expected):
    question = Question()
    shared = SharedAnswer(question, keep_s=keep_s)
    answers = []
    for value in (7, 8):
        (caller,) = await started(shared, 1)
        if not question.answers[-1].done():
            question.answers[-1].set_result(value)
        answers.append(await caller)
    assert answers == expected


async def test_an_error_reaches_who_waits_and_is_not_kept():
    question = Question()
    shared = SharedAnswer(question, keep_s=3600)
    callers = await started(shared, 2)
    question.answers[0].set_exception(ChainUnavailable("silent"))
    outcomes = await asyncio.gather(*callers, return_exceptions=True)
    assert [type(each) for each in outcomes] == [ChainUnavailable] * 2
    (later,) = await started(shared, 1)
    question.answers[1].set_result(8)
    assert await later == 8


async def test_a_caller_that_goes_away_takes_nothing_from_the_others():
    question = Question()
    shared = SharedAnswer(question, keep_s=0)
    gone, stays = await started(shared, 2)
    gone.cancel()
    question.answers[0].set_result(7)
    assert await stays == 7
    assert question.asked == 1
