"""Pauses between retries and rests of endpoints: they grow, and end."""

import pytest

from gateway.chain.retries import (
    Cooldown,
    EndpointRefused,
    RetryBudget,
    RetryTiming,
    retry_refused,
)

AT_ONCE = RetryTiming(first_pause_s=0.0, longest_pause_s=0.0)


class Refusing:
    """Refuses some calls, and answers the next one."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.calls = 0

    async def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.refusals:
            raise EndpointRefused("busy")
        return "answer"


async def retry(ask: Refusing, budget: RetryBudget, *, within_s: float = 60.0) -> str:
    return await retry_refused(
        ask, within_s=within_s, retry_after_s=lambda: 0.0, budget=budget, timing=AT_ONCE
    )


@pytest.mark.parametrize(("tries", "longest_s"), [(1, 1.0), (2, 2.0), (3, 4.0), (9, 6.0)])
def test_the_pause_doubles_up_to_the_longest(tries, longest_s):
    pause_s = RetryTiming(first_pause_s=1.0, longest_pause_s=6.0).pause_s(tries)
    assert longest_s / 2 <= pause_s <= longest_s


def test_there_is_no_pause_before_the_first_try():
    assert RetryTiming().pause_s(0) == 0.0


def test_a_rest_grows_with_the_failures_in_a_row_and_ends_with_an_answer():
    cooldown = Cooldown(RetryTiming(first_cooldown_s=1.0, longest_cooldown_s=600.0))
    for least_s in (0.5, 1.0, 2.0):
        cooldown.begin(100.0, least_s=0.0, retry_after_s=0.0)
        assert 100.0 + least_s <= cooldown.until <= 100.0 + 2 * least_s
    cooldown.end()
    assert (cooldown.failures, cooldown.until) == (0, 0.0)


def test_of_a_wish_only_the_longest_is_heeded():
    cooldown = Cooldown(RetryTiming(longest_retry_after_s=10.0))
    cooldown.begin(100.0, least_s=0.0, retry_after_s=3600.0)
    assert cooldown.retry_after == 110.0


async def test_a_refused_call_is_made_again_until_it_is_answered():
    ask, budget = Refusing(3), RetryBudget()
    assert await retry(ask, budget) == "answer"
    assert ask.calls == 4


async def test_without_budget_a_refused_call_is_not_made_again():
    ask = Refusing(3)
    with pytest.raises(EndpointRefused):
        await retry(ask, RetryBudget(left=-(10.0**9)))
    assert ask.calls == 1
