"""When a refused call is made again: after short pauses, until a deadline, within a budget.

A busy endpoint answers 429 to one call and serves the next one. So a refusal is asked again, while
silence is not: a time-out has used up the time already.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import attrs

from gateway.errors import ChainUnavailable

Answer = TypeVar("Answer")

_MOST_TRIES = 16  # of one call: where half of them are refused, one in 65,536 fails
_FIRST_PAUSE_S = 0.05  # before the second try; doubles up to the next
_PAUSE_S = 0.4
_REST_S = 0.25  # of an endpoint after its first refusal; doubles up to the next
_LONGEST_REST_S = 5.0
_LONGEST_WISH_S = 10.0  # of a Retry-After that is heard: another one may follow
_RETRIES = 200.0  # of all calls of the process together, at once
_RETRIES_PER_S = 20.0  # that the process regains


class EndpointRefused(ChainUnavailable):
    """An endpoint was reached or not, and did nothing: the same call may succeed at once."""

    def __init__(
        self, message: str, *, details: str | None = None, retry_after_s: float = 0.0
    ) -> None:
        super().__init__(message, details=details)
        self.retry_after_s = retry_after_s


@attrs.define
class Rest:
    """How long an endpoint that fails is asked last; all times are the loop's."""

    failures: int = 0  # in a row
    until: float = 0.0
    wished_until: float = 0.0  # by a Retry-After

    def begin(self, now: float, *, least_s: float, wished_s: float) -> None:
        """Rest longer after each failure, and at least as long as the endpoint asks for."""
        self.failures += 1
        rest_s = min(_REST_S * 2 ** min(self.failures - 1, 10), _LONGEST_REST_S)
        self.until = now + max(least_s, rest_s * _jitter())
        self.wished_until = max(self.wished_until, now + min(wished_s, _LONGEST_WISH_S))

    def end(self) -> None:
        """Note an answer."""
        self.failures, self.until = 0, 0.0


@attrs.define
class RetryBudget:
    """What bounds the second tries of a whole process, however many calls are refused."""

    left: float = _RETRIES
    counted_at: float = 0.0

    def take(self, now: float) -> bool:
        """Return whether one more retry may be made now, and count it."""
        regained = (now - self.counted_at) * _RETRIES_PER_S
        self.left, self.counted_at = min(_RETRIES, self.left + regained), now
        if self.left < 1.0:
            return False
        self.left -= 1.0
        return True


async def retried(
    ask: Callable[[], Awaitable[Answer]],
    *,
    within_s: float,
    wished_s: Callable[[], float],
    budget: RetryBudget,
) -> Answer:
    """Return the answer to a call that is made again while it is refused.

    `wished_s` says how long the endpoints ask to be left alone. No try begins later than
    `within_s` after the first, and a later try than the first ends by then.
    Raises `EndpointRefused` where every try was refused, `ChainUnavailable` as `ask` does.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within_s
    refusal = EndpointRefused(
        "The chain does not answer now. Nothing was charged; try again.",
        details="every RPC endpoint asks to be left alone for a while",
    )
    for tries in range(_MOST_TRIES):
        wait_s = max(wished_s(), _pause_s(tries))
        if loop.time() + wait_s >= deadline or (tries and not budget.take(loop.time())):
            break
        await asyncio.sleep(wait_s)
        try:
            async with asyncio.timeout_at(deadline if tries else None):
                return await ask()
        except EndpointRefused as error:
            refusal = error
        except TimeoutError:
            break
    raise refusal


def _pause_s(tries: int) -> float:
    """Return the pause before the next try; none before the first."""
    if not tries:
        return 0.0
    pause_s: float = min(_FIRST_PAUSE_S * 2 ** (tries - 1), _PAUSE_S)
    return pause_s * _jitter()


def _jitter() -> float:
    """Return a factor that spreads those who were refused together."""
    return random.uniform(0.5, 1.0)  # noqa: S311 - no secret
