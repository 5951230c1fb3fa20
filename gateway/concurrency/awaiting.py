"""Await work: start it at once, let it outlive a cancelled caller, or answer those who wait."""

import asyncio
import functools
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

_Value = TypeVar("_Value")


class EagerStart(Generic[_Value]):
    """A coroutine after its first step, which ran in the current task; awaiting it runs the rest.

    Await it before anything else: its first wait must be this task's next one. The constructor
    raises an exception of the first step.
    """

    __slots__ = ("_waits_for", "_work", "is_done", "result")

    # Set only if `is_done`.
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

    From Python 3.14 on, `asyncio.shield` reports an error of the abandoned task to the event loop.
    Here other waiters or the done callbacks of the task handle it. `asyncio.wait` would do, but a
    sale waits so over ten times, and its bookkeeping for many tasks takes most of the time.
    """
    if not work.done():
        has_ended = asyncio.get_running_loop().create_future()
        wake = functools.partial(_wake, has_ended)
        work.add_done_callback(wake)
        try:
            await has_ended
        except asyncio.CancelledError:
            work.remove_done_callback(wake)
            work.add_done_callback(mark_read)
            raise
    return work.result()


def _wake(waiter: asyncio.Future[None], _: "asyncio.Future[Any]") -> None:
    if not waiter.done():
        waiter.set_result(None)


def mark_read(work: "asyncio.Future[Any]") -> None:
    """Retrieve an abandoned task's exception, or asyncio logs that it was never retrieved."""
    if not work.cancelled():
        work.exception()


def answer_caller(answer: asyncio.Future[Any], outcome: Any) -> None:
    """Resolve a future with a result or an error, unless its caller was cancelled."""
    if answer.cancelled():
        return
    if not isinstance(outcome, BaseException):
        answer.set_result(outcome)
        return
    if not isinstance(outcome, Exception) or isinstance(outcome, StopIteration):
        # A future rejects such an error.
        outcome = RuntimeError(f"the work raised {outcome!r}")
    answer.set_exception(outcome)
    # Mark the error as retrieved. If the caller is cancelled now, asyncio would log it as lost.
    answer.exception()
