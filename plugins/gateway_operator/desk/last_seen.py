"""Values of the chain: the last known one is used if it does not respond in time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

import attrs

from gateway.concurrency.shared_answers import SharedAnswers
from gateway.contracts import CallReverted, Clock
from gateway.errors import GatewayError

Value = TypeVar("Value")

# Seconds to wait for the chain.
TIMEOUT_S = 2.0
# Seconds that a value or failure is cached.
TTL_S = 5.0
_MAX = 64


@attrs.frozen(kw_only=True)
class Seen(Generic[Value]):
    """A value, and when it was read; `problem` is why there is no newer one."""

    # None: never read.
    value: Value | None
    at: float | None
    problem: str | None = None


class LastSeen:
    """The last known value of each name."""

    def __init__(self, now: Clock, *, ttl_s: float = TTL_S) -> None:
        self._now = now
        self._values: dict[str, Seen[Any]] = {}
        self._shared: SharedAnswers[Seen[Any]] = SharedAnswers(now, ttl_s=ttl_s, most=_MAX)

    async def ask(self, name: str, call: Callable[[], Awaitable[Value]]) -> Seen[Value]:
        """Return the result of `call` within two seconds, else the last value of this name."""
        return await self._shared.get(name, lambda: self._ask(name, call))

    async def _ask(self, name: str, call: Callable[[], Awaitable[Value]]) -> Seen[Value]:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                seen = Seen(value=await call(), at=self._now())
        except (TimeoutError, GatewayError, CallReverted) as error:
            problem = error.message if isinstance(error, GatewayError) else "It does not answer."
            last = self._values.get(name, Seen(value=None, at=None))
            return attrs.evolve(last, problem=problem)
        self._values[name] = seen
        return seen
