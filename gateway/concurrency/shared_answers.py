"""Answers that many callers share: one question under way, one answer kept for a while."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from gateway.concurrency.awaiting import mark_read, outlive

Answer = TypeVar("Answer")


class SharedAnswer(Generic[Answer]):
    """One answer, asked for by the first caller and given to all callers of `ttl_s` seconds.

    Callers that come while the question is under way wait for its answer. So an answer may be as
    old as `ttl_s` and one question together. An error is raised to all callers that wait, and the
    next caller asks again.
    """

    def __init__(self, now: Callable[[], float], *, ttl_s: float) -> None:
        self.ttl_s = ttl_s
        self._now = now
        # The answer as the only item, or nothing.
        self._answers: tuple[Answer, ...] = ()
        self._answered_at = 0.0
        self._question: asyncio.Task[Answer] | None = None

    async def get(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Return the kept answer if it is recent, else the answer to a question that runs now.

        The question goes on when a caller hangs up: other callers wait for it, and callers that
        hang up again and again would otherwise start a question each time.
        """
        if self._is_recent:
            return self._answers[0]
        return await outlive(self._begin_question(ask))

    def begin(self, ask: Callable[[], Awaitable[Answer]]) -> None:
        """Ask now if a `get` would, so that a later `get` waits less. Its error is not raised."""
        if not self._is_recent:
            self._begin_question(ask)

    @property
    def _is_recent(self) -> bool:
        return bool(self._answers) and 0 <= self._now() - self._answered_at < self.ttl_s

    def _begin_question(self, ask: Callable[[], Awaitable[Answer]]) -> "asyncio.Task[Answer]":
        # One that has ended is not under way, though its callback may run only later in this turn.
        if self._question is None or self._question.done():
            self._question = asyncio.create_task(self._ask(ask), name="shared-answer")
            self._question.add_done_callback(self._end_question)
        return self._question

    async def _ask(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        answer = await ask()
        self._answers, self._answered_at = (answer,), self._now()
        return answer

    def _end_question(self, question: asyncio.Task[Answer]) -> None:
        if self._question is question:
            self._question = None
        mark_read(question)

    async def close(self) -> None:
        """Stop the question that is under way."""
        if self._question is not None:
            self._question.cancel()
            await asyncio.wait({self._question})


class SharedAnswers(Generic[Answer]):
    """Shared answers by a key; the least recently used key is forgotten beyond `most` keys."""

    def __init__(self, now: Callable[[], float], *, ttl_s: float, most: int) -> None:
        self.ttl_s = ttl_s
        self._now = now
        self._most = most
        # The key that was used last comes last.
        self._by_key: dict[str, SharedAnswer[Answer]] = {}

    async def get(self, key: str, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Return the kept answer of a key, else the answer to a question that runs now."""
        shared = self._by_key.pop(key, None)
        if shared is None:
            shared = SharedAnswer(self._now, ttl_s=self.ttl_s)
        self._by_key[key] = shared
        if len(self._by_key) > self._most:
            del self._by_key[next(iter(self._by_key))]
        return await shared.get(ask)

    def forget(self) -> None:
        """Drop all kept answers, because something has changed."""
        self._by_key.clear()
