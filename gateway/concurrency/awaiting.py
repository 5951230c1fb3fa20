"""Two ways to await work: start it at once, or let it outlive a cancelled caller."""

import asyncio
import functools
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

_Value = TypeVar("_Value")


class EagerStart(Generic[_Value]):
    """A coroutine after its first step, which ran in the present task; awaiting it runs the rest.

    Whoever makes one awaits nothing else before it: the first wait is this task's next one. The
    constructor raises what the first step raises.
    """

    __slots__ = ("_waits_for", "_work", "is_done", "result")

    # Set only where `is_done`.
    result: _Value

    def __init__(self, work: Coroutine[Any, Any, _Value]) -> None:
        self._work = work
        self._waits_for: Any = None
        self.is_done = False
        try:
            self._waits_for = work.send(None)
        except StopIteration as end:
            self.is_done, self.result = True, end.value

    def __await__(self) -> Generator[Any, Any, _Value]:
        """Run the coroutine to its end, and return its result."""
        if self.is_done:
            return self.result
        while True:
            try:
                sent = yield self._waits_for
            except BaseException as error:  # noqa: BLE001 - the coroutine decides about it
                step = functools.partial(self._work.throw, error)
            else:
                step = functools.partial(self._work.send, sent)
            try:
                self._waits_for = step()
            except StopIteration as end:
                self.is_done, self.result = True, end.value
                return self.result


async def outlive(work: "asyncio.Future[_Value]") -> _Value:
    """Return the result of a task that a cancelled caller leaves running.

    `asyncio.shield` reports an error of the abandoned task to the event loop from Python 3.14 on.
    Here it belongs to whoever else waits for the task, or to its done callbacks.
    """
    try:
        await asyncio.wait((work,))
    except asyncio.CancelledError:
        work.add_done_callback(_mark_read)
        raise
    return work.result()


def _mark_read(work: "asyncio.Future[Any]") -> None:
    if not work.cancelled():
        work.exception()
