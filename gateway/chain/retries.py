"""Kinds of failed calls, and retries with backoff, a deadline and a retry budget.

A busy endpoint may answer one call with 429 and serve the next, so refused calls are retried. Calls
that timed out are not: they have used up the time.
"""

import asyncio
import random
import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import attrs

from gateway.contracts import CallReverted
from gateway.errors import ChainUnavailable

Answer = TypeVar("Answer")

# The authorization may have been spent before, or be on record.
UNREACHABLE = "The chain does not answer now. Send the same again: it is never charged twice."
# Attempts per call. If half of all attempts are refused, one call in 65,536 fails.
_MAX_TRIES = 16
# The retry budget of the process: burst size, and refill rate per second.
_MAX_RETRIES = 200.0
_RETRIES_PER_S = 20.0


@attrs.frozen(kw_only=True, eq=False, repr=False)
class RetryTiming:
    """Backoff of refused calls, and rests of failing endpoints, in seconds."""

    first_pause_s: float = 0.05
    """Before the second attempt; doubles before each further one."""
    longest_pause_s: float = 0.4
    first_cooldown_s: float = 0.25
    """After an endpoint's first failure; doubles after each further one."""
    longest_cooldown_s: float = 5.0
    longest_retry_after_s: float = 10.0
    """Upper limit of a Retry-After."""

    def pause_s(self, tries: int) -> float:
        """Return the pause after a number of attempts; 0 before the first one."""
        if not tries:
            return 0.0
        pause_s: float = min(self.first_pause_s * 2 ** (tries - 1), self.longest_pause_s)
        return pause_s * _jitter()

    def cooldown_s(self, failures: int) -> float:
        """Return an endpoint's rest after a number of consecutive failures."""
        doublings = min(failures - 1, 10)
        cooldown_s: float = min(self.first_cooldown_s * 2**doublings, self.longest_cooldown_s)
        return cooldown_s * _jitter()


class EndpointRefused(ChainUnavailable):
    """An endpoint refused a call or could not be reached; a retry may succeed."""

    def __init__(
        self,
        message: str,
        *,
        details: str | None = None,
        retry_after_s: float = 0.0,
        answer: Any = None,
        is_general: bool = True,
    ) -> None:
        super().__init__(message, details=details)
        self.retry_after_s = retry_after_s
        # False if the endpoint might serve any other call, such as after a status 500.
        self.is_general = is_general
        # The JSON-RPC error in the body of an HTTP error response, if any.
        self.answer = answer


class EndpointLags(EndpointRefused):
    """An endpoint lacks a block that another one has; it may have it a moment later."""


@attrs.define(eq=False, repr=False)
class Cooldown:
    """The rest of a failing endpoint, which is then tried last; times of the loop's clock."""

    timing: RetryTiming = attrs.field(factory=RetryTiming)
    failures: int = 0
    """Consecutive failures."""
    until: float = 0.0
    retry_after: float = 0.0
    """As a Retry-After asked."""

    def begin(self, now: float, *, least_s: float, retry_after_s: float) -> None:
        """Rest, longer after each failure, and at least `least_s`."""
        self.failures += 1
        self.until = now + max(least_s, self.timing.cooldown_s(self.failures))
        self.retry_after = max(
            self.retry_after, now + min(retry_after_s, self.timing.longest_retry_after_s)
        )

    def end(self) -> None:
        """End the rest: the endpoint responded."""
        self.failures, self.until = 0, 0.0


@attrs.define(eq=False, repr=False)
class RetryBudget:
    """Limits the retries of the whole process."""

    left: float = _MAX_RETRIES
    counted_at: float = 0.0

    def take(self, now: float) -> bool:
        """Take one retry from the budget; returns whether one was left."""
        regained = (now - self.counted_at) * _RETRIES_PER_S
        self.left, self.counted_at = min(_MAX_RETRIES, self.left + regained), now
        if self.left < 1.0:
            return False
        self.left -= 1.0
        return True


async def retry_refused(
    ask: Callable[[], Awaitable[Answer]],
    *,
    within_s: float,
    retry_after_s: Callable[[], float],
    budget: RetryBudget,
    timing: RetryTiming,
) -> Answer:
    """Call `ask`, and retry while it is refused.

    `retry_after_s` returns the pause that the endpoints ask for, in seconds. No attempt starts
    later than `within_s` after the first, and all but the first end by then.
    Raises `EndpointRefused` if every attempt was refused, `ChainUnavailable` as `ask` does.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within_s
    refusal: EndpointRefused | None = None
    for tries in range(_MAX_TRIES):
        wait_s = max(retry_after_s(), timing.pause_s(tries))
        if loop.time() + wait_s >= deadline or (tries and not budget.take(loop.time())):
            break
        # Nearly every first attempt succeeds, so it needs no sleep and no timer.
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
        UNREACHABLE,
        details="every RPC endpoint asks to be left alone for a while",
    )


def _jitter() -> float:
    """Return a random factor that spreads calls which were refused together."""
    return random.uniform(0.5, 1.0)  # noqa: S311 - no secret


LOGS = "eth_getLogs"
# geth's error code for "execution reverted".
_REVERTED = 3
# Other methods run no contract.
_MAY_REVERT = ("eth_call", "eth_sendRawTransaction")
# Messages of geth, reth and Nethermind for calls that fail without a revert.
_FAILED_CALL = re.compile(
    r"out of gas|invalid opcode|invalid jump destination|stack (under|over)flow|stack limit reached"
    r"|write protection|return data out of bounds|evm error|vm execution error",
    re.IGNORECASE,
)
# Codes and messages of vendors' rate limits.
_BUSY_CODES = (429, -32005, -32016, -32029)
_BUSY = re.compile(
    r"rate.?(limit|exceed)|too many requests|capacity|throttl|per second|\brps\b|quota"
    r"|requests?\b.{0,20}(count|limit|exceed)",
    re.IGNORECASE,
)
# Such an error is about the call: "gas limit exceeds request limit".
_GAS = re.compile(r"\bgas\b", re.IGNORECASE)
# Messages of a node that lacks a block: several nodes may serve one URL.
_LAGS = re.compile(
    r"\b(header|blocks?|hash)\b.{0,90}\b(not|cannot be|could not be) (found|available)"
    r"|unknown block|could not find block|beyond (the )?(current )?head|after (the )?latest",
    re.IGNORECASE,
)
# Messages of a node that keeps no state as old as the block.
_PRUNED = re.compile(
    r"missing trie node|\bprun(ed|ing)\b|\bhistorical state\b|\barchive\b"
    r"|\bstate\b.{0,120}\b(not |un)available|\bno state available",
    re.IGNORECASE,
)
# Messages for a log query that would work over fewer blocks.
_RANGE = re.compile(
    r"\bblocks?\b|\branges?\b|\bresults?\b|response size|too (large|wide|big|broad)|query timeout",
    re.IGNORECASE,
)
# Messages for a method that is missing, or not allowed for this key.
_NEVER = re.compile(
    r"authenticat|authori[sz]|forbidden|api.?key|not supported|not found", re.IGNORECASE
)
_NO_METHOD = -32601


class StatePruned(ChainUnavailable):
    """An endpoint keeps no state as old as the block of a call."""


class RangeRefused(ChainUnavailable):
    """An endpoint refused a log query; it may accept fewer blocks."""

    def __init__(self, message: str, *, details: str | None, is_certain: bool) -> None:
        super().__init__(message, details=details)
        # Whether the message mentions blocks or a size.
        self.is_certain = is_certain


def read_failure(place: int, method: str, error: Any) -> Exception:
    """Return the exception for a JSON-RPC error.

    Vendors refuse log ranges with many messages and codes, so any unrecognised error of a log query
    counts as such a refusal.
    """
    message = str(error.get("message", "")) if isinstance(error, dict) else str(error)
    code = error.get("code") if isinstance(error, dict) else None
    is_reverted = code == _REVERTED or "revert" in message.lower()
    is_failed_call = method == "eth_call" and _FAILED_CALL.search(message) is not None
    if (is_reverted and method in _MAY_REVERT) or is_failed_call:
        return CallReverted(message)
    failed, details = f"RPC endpoint {place}: {method} failed", message[:200]
    is_about_gas = method == "eth_call" and _GAS.search(message) is not None
    is_busy = code in _BUSY_CODES or (_BUSY.search(message) is not None and not is_about_gas)
    if method != LOGS and not is_busy and _PRUNED.search(message):
        return StatePruned(f"RPC endpoint {place} has no old state at {method}", details=details)
    if code != _NO_METHOD and _LAGS.search(message):
        return EndpointLags(f"RPC endpoint {place} lacks a block at {method}", details=details)
    if method == LOGS:
        is_certain = _RANGE.search(message) is not None
        if is_certain or not (is_busy or code == _NO_METHOD or _NEVER.search(message)):
            return RangeRefused(failed, details=details, is_certain=is_certain)
    if is_busy:
        return EndpointRefused(f"RPC endpoint {place} refuses {method} for now", details=details)
    return ChainUnavailable(failed, details=details)
