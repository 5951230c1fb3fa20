"""JSON that shows a task with a long text, sent piece by piece.

A client that does not read holds one piece at a time, and clients of the same text share it.
"""

import time
from collections.abc import AsyncGenerator

import attrs
import msgspec

from gateway.concurrency.shared_answers import SharedAnswers
from gateway.domain import LongText, Task
from gateway.store import SqlStore

# Parts of texts that are kept for the next client: some 66 KB each, and 393 KB at most.
_MOST_PARTS = 32
_KEPT_S = 10.0


class LongTexts:
    """Reads the parts of long texts."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self._parts = SharedAnswers[bytes](time.monotonic, kept_s=_KEPT_S, most=_MOST_PARTS)

    async def part(self, task_id: str, number: int) -> bytes:
        """Return a part as it is in JSON, without quotes; raises `LookupError`."""

        async def read() -> bytes:
            found = await self._store.text_part(task_id, number)
            if found is None:
                raise LookupError("A part of the task's text is missing.")
            return found

        return await self._parts.get(f"{task_id}/{number}", read)

    async def first_chars(self, task: Task) -> str | None:
        """Return a task's text, or the first 65,536 characters of a long one; None without text."""
        if task.result is None or task.result.long_text is None:
            return task.result.text if task.result is not None else None
        text: str = msgspec.json.decode(b'"%b"' % await self.part(task.id, 0))
        return text


@attrs.frozen
class ShownTask:
    """The JSON of a task, in UTF-8: whole in `before`, or the two sides of a long text."""

    task_id: str
    before: bytes
    text: LongText | None = None
    after: bytes = b""

    @property
    def size(self) -> int:
        """The number of all bytes."""
        text_bytes = self.text.json_bytes if self.text is not None else 0
        return len(self.before) + text_bytes + len(self.after)

    def within(self, before: bytes, after: bytes) -> "ShownTask":
        """Return the same with bytes around it."""
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
