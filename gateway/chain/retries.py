"""When a refused call is made again: after short pauses, until a deadline, within a budget.

A busy endpoint answers one call with 429 and serves the next one, so a refused call is made again.
A call that timed out is not: it has used up the time already.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import attrs

from gateway.errors import ChainUnavailable

Answer = TypeVar("Answer")

# The authorization that a request brought may have been spent before.
SILENT = "The chain does not answer now. This request charged nothing; send the same again."
# Tries of one call. If half of all calls are refused, one call in 65,536 fails.
_MOST_TRIES = 16
# The retry budget of the process: burst size, and refill rate per second.
_MOST_RETRIES = 200.0
_RETRIES_PER_S = 20.0


@attrs.frozen(kw_only=True)
class RetryTiming:
    """How long refused calls pause, and endpoints that fail rest; all times are in seconds."""

    first_pause_s: float = 0.05
    """Before the second try of a call; the pause doubles before each further try."""
    longest_pause_s: float = 0.4
    first_rest_s: float = 0.25
    """Of an endpoint after its first failure; the rest doubles after each further failure."""
    longest_rest_s: float = 5.0
    longest_wish_s: float = 10.0
    """The most of a Retry-After that is heeded: another one may follow."""

    def pause_s(self, tries: int) -> float:
        """Return the pause after a number of tries; 0 before the first one."""
        if not tries:
            return 0.0
        pause_s: float = min(self.first_pause_s * 2 ** (tries - 1), self.longest_pause_s)
        return pause_s * _jitter()

    def rest_s(self, failures: int) -> float:
        """Return the rest after a number of failures in a row."""
        doublings = min(failures - 1, 10)
        rest_s: float = min(self.first_rest_s * 2**doublings, self.longest_rest_s)
        return rest_s * _jitter()


class EndpointRefused(ChainUnavailable):
    """An endpoint refused a call or was not reached: the next try may succeed."""

    def __init__(
        self,
        message: str,
        *,
        details: str | None = None,
        retry_after_s: float = 0.0,
        answer: Any = None,
    ) -> None:
        super().__init__(message, details=details)
        self.retry_after_s = retry_after_s
        # The JSON-RPC answer that came with the status of a failure, if one did.
        self.answer = answer


class EndpointLags(EndpointRefused):
    """An endpoint lacks a block that another one has shown: it may have it a moment later."""


@attrs.define
class Rest:
    """How long an endpoint that fails is asked after the others; all times are the loop's."""

    timing: RetryTiming = attrs.field(factory=RetryTiming)
    failures: int = 0
    """In a row."""
    until: float = 0.0
    wished_until: float = 0.0
    """By a Retry-After."""

    def begin(self, now: float, *, least_s: float, wished_s: float) -> None:
        """Rest longer after each failure, and at least as long as the endpoint asks for."""
        self.failures += 1
        self.until = now + max(least_s, self.timing.rest_s(self.failures))
        self.wished_until = max(self.wished_until, now + min(wished_s, self.timing.longest_wish_s))

    def end(self) -> None:
        """Note that the endpoint answered."""
        self.failures, self.until = 0, 0.0


@attrs.define
class RetryBudget:
    """Bounds the retries of a whole process, however many calls are refused."""

    left: float = _MOST_RETRIES
    counted_at: float = 0.0

    def take(self, now: float) -> bool:
        """Return whether one more retry may be made now, and count it."""
        regained = (now - self.counted_at) * _RETRIES_PER_S
        self.left, self.counted_at = min(_MOST_RETRIES, self.left + regained), now
        if self.left < 1.0:
            return False
        self.left -= 1.0
        return True


async def retry_refused(
    ask: Callable[[], Awaitable[Answer]],
    *,
    within_s: float,
    wished_s: Callable[[], float],
    budget: RetryBudget,
    timing: RetryTiming,
) -> Answer:
    """Return the answer to a call that is made again while it is refused.

    `wished_s` returns how long the endpoints ask to be left alone, in seconds. No try begins later
    than `within_s` after the first one; every try but the first one ends by then.
    Raises `EndpointRefused` if every try was refused, `ChainUnavailable` as `ask` does.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within_s
    refusal: EndpointRefused | None = None
    for tries in range(_MOST_TRIES):
        wait_s = max(wished_s(), timing.pause_s(tries))
        if loop.time() + wait_s >= deadline or (tries and not budget.take(loop.time())):
            break
        # Nearly every call is answered at its first try: no turn of the loop, and no timer for it.
        if wait_s:
            await asyncio.sleep(wait_s)
        try:
            if not tries:
                return await ask()
            async with asyncio.timeout_at(deadline):
                return await ask()
        except EndpointRefused as error:
            refusal = error
        except TimeoutError:
            break
    raise refusal or EndpointRefused(
        SILENT,
        details="every RPC endpoint asks to be left alone for a while",
    )


def _jitter() -> float:
    """Return a factor that spreads calls which were refused together."""
    return random.uniform(0.5, 1.0)  # noqa: S311 - no secret
