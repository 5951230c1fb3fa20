"""Streams the JSON of a task with a long text, in parts.

A slow client keeps only one part in memory, and clients of the same text share it.
"""

import time
from collections.abc import AsyncGenerator

import attrs
import msgspec

from gateway.concurrency.shared_answers import SharedAnswers
from gateway.domain import LongText, Task
from gateway.store import SqlStore

# Cached parts of texts, about 66 KB each and 393 KB at most.
_MAX_PARTS = 32
_TTL_S = 10.0


class LongTexts:
    """Reads and caches the parts of long texts."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self._parts = SharedAnswers[bytes](time.monotonic, ttl_s=_TTL_S, most=_MAX_PARTS)

    async def part(self, task_id: str, number: int) -> bytes:
        """Return a part, JSON-encoded without quotes; raises `LookupError` if it is missing."""

        async def read() -> bytes:
            found = await self._store.text_part(task_id, number)
            if found is None:
                raise LookupError("A part of the task's text is missing.")
            return found

        return await self._parts.get(f"{task_id}/{number}", read)

    async def first_chars(self, task: Task) -> str | None:
        """Return the first 65,536 characters of a long text, a shorter one whole, or None."""
        if task.result is None or task.result.long_text is None:
            return task.result.text if task.result is not None else None
        text: str = msgspec.json.decode(b'"%b"' % await self.part(task.id, 0))
        return text


@attrs.frozen(eq=False, repr=False)
class ShownTask:
    """The JSON of a task in UTF-8. `before` is all of it, or all before a long text."""

    task_id: str
    before: bytes
    text: LongText | None = None
    after: bytes = b""

    @property
    def size(self) -> int:
        """The total number of bytes."""
        text_bytes = self.text.json_bytes if self.text is not None else 0
        return len(self.before) + text_bytes + len(self.after)

    def within(self, before: bytes, after: bytes) -> "ShownTask":
        """Return a copy with bytes around it."""
        if self.text is None:
            return attrs.evolve(self, before=before + self.before + after)
        return attrs.evolve(self, before=before + self.before, after=self.after + after)

    async def pieces(self, texts: LongTexts) -> AsyncGenerator[bytes, None]:
        """Yield the JSON piece by piece."""
        yield self.before
        if self.text is not None:
            for number in range(self.text.parts):
                yield await texts.part(self.task_id, number)
            yield self.after
