"""Shares one answer of the chain among all callers that want it at about the same time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Answer = TypeVar("Answer")

# Base's time between two blocks.
BLOCK_S = 2.0


class SharedAnswer(Generic[Answer]):
    """One question to the chain that many callers have.

    Callers that come while the question is under way share its answer, and so do those that come
    within `keep_s` seconds of its beginning. An error is not kept: each caller that waited gets it,
    and the next one asks anew.
    """

    def __init__(self, ask: Callable[[], Awaitable[Answer]], *, keep_s: float) -> None:
        self._ask = ask
        self._keep_s = keep_s
        self._kept_until = 0.0
        self._answer: asyncio.Task[Answer] | None = None

    async def get(self) -> Answer:
        """Return the answer; raises what asking raises."""
        now = asyncio.get_running_loop().time()
        if self._answer is None or self._is_over(self._answer, now):
            self._kept_until = now + self._keep_s
            self._answer = asyncio.create_task(self._run(), name="asks-chain")
        # One caller may be cancelled while the others still wait.
        return await asyncio.shield(self._answer)

    def _is_over(self, answer: asyncio.Task[Answer], now: float) -> bool:
        if not answer.done():
            return False
        return answer.cancelled() or answer.exception() is not None or now >= self._kept_until

    async def _run(self) -> Answer:
        return await self._ask()
