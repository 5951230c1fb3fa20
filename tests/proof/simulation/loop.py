"""An event loop in virtual time: it never waits, and can discard a dead process's callbacks.

Handles run one by one in a fixed order, so a history can stop between any two of them. The context
identifies a handle's process: everything that a process starts inherits `OWNER`.
"""

import asyncio
import contextvars
import heapq
import itertools
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

OWNER: contextvars.ContextVar[object] = contextvars.ContextVar("owner", default=None)


class Handle:
    """A callback in the queue."""

    __slots__ = ("arguments", "callback", "context", "is_cancelled", "moment")

    def __init__(self, callback, arguments, context, moment=0.0):
        self.callback = callback
        self.arguments = arguments
        self.context = context
        self.moment = moment
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True

    def cancelled(self) -> bool:
        return self.is_cancelled

    def when(self) -> float:
        return self.moment


class SimTask(asyncio.Task):
    """A task whose order in a set does not depend on its address."""

    number = 0
    owner: object = None
    context: contextvars.Context

    def __hash__(self) -> int:
        return self.number


class VirtualLoop(asyncio.AbstractEventLoop):
    """Runs ready callbacks; without any, the clock jumps to the next timer."""

    def __init__(self) -> None:
        self._now = 0.0
        self._ready: deque[Handle] = deque()
        self._scheduled: list[tuple[float, int, Handle]] = []
        self._order = itertools.count()
        self._numbers = itertools.count(1)
        self._tasks: dict[int, SimTask] = {}
        self.steps = 0
        self._stops: list[tuple[int, int, Callable[[], None]]] = []
        self.complaints: list[str] = []
        self._has_forgotten = False

    # -- asyncio's interface of a loop

    def time(self) -> float:
        return self._now

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro, *, name=None, context=None) -> SimTask:
        context = contextvars.copy_context() if context is None else context
        task = SimTask(coro, loop=self, name=name or "task", context=context)
        task.number, task.owner = next(self._numbers), context.get(OWNER)
        task.context = context  # `get_context` is Python 3.12's
        task._log_destroy_pending = False
        self._tasks[task.number] = task
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: SimTask) -> None:
        self._tasks.pop(task.number, None)

    def call_soon(self, callback, *args, context=None) -> Handle:
        context = contextvars.copy_context() if context is None else context
        handle = Handle(callback, args, context)
        self._ready.append(handle)
        return handle

    def call_later(self, delay, callback, *args, context=None) -> Handle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(self, when, callback, *args, context=None) -> Handle:
        context = contextvars.copy_context() if context is None else context
        handle = Handle(callback, args, context, when)
        heapq.heappush(self._scheduled, (when, next(self._order), handle))
        return handle

    def run_in_executor(self, executor, func, *args) -> asyncio.Future[Any]:
        """Run at once; the result comes one iteration later, like a thread's."""
        answer = self.create_future()
        try:
            result = func(*args)
        except Exception as error:  # noqa: BLE001 - the caller hears of it
            self.call_soon(_tell_error, answer, error)
        else:
            self.call_soon(_tell, answer, result)
        return answer

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self._has_forgotten:
            return  # what a dead process's tasks had to say, nobody hears
        error = context.get("exception")
        self.complaints.append(f"{context.get('message')} {error!r}")

    # -- the history's interface

    def run(self, main: Coroutine[Any, Any, Any]) -> Any:
        """Run until `main` is done, and return its result."""
        before = events._get_running_loop()
        events._set_running_loop(self)
        try:
            task = self.create_task(main, name="main")
            while not task.done():
                self._step()
            return task.result()
        finally:
            self._close()
            events._set_running_loop(before)

    def _step(self) -> None:
        ready, scheduled = self._ready, self._scheduled
        while scheduled and (not ready or scheduled[0][0] <= self._now):
            moment, _, handle = heapq.heappop(scheduled)
            if not handle.is_cancelled:
                self._now = max(self._now, moment)
                ready.append(handle)
        if not ready:
            raise RuntimeError("the history waits for something that never happens")
        handle = ready.popleft()
        if handle.is_cancelled:
            return
        self.steps += 1
        handle.context.run(handle.callback, *handle.arguments)
        while self._stops and self._stops[0][0] <= self.steps:
            heapq.heappop(self._stops)[2]()

    def after_steps(self, steps: int, stop: Callable[[], None]) -> None:
        """Call `stop` after `steps` more steps; 0 is after the current one."""
        heapq.heappush(self._stops, (self.steps + steps, next(self._order), stop))

    def forget(self, owner: object) -> None:
        """Let a process die: none of its code runs any more.

        Its coroutines are closed here, so that the interpreter does not do it later. Their
        `finally` may run then, so the owner must have disabled the seams before.
        """
        self._has_forgotten = True
        while dead := [task for task in self._tasks.values() if task.owner is owner]:
            for task in dead:  # closing one may start others
                _close(task)
                self._tasks.pop(task.number, None)
        self._ready = deque(h for h in self._ready if h.context.get(OWNER) is not owner)
        for _, _, handle in self._scheduled:
            if handle.context.get(OWNER) is owner:
                handle.is_cancelled = True

    def _close(self) -> None:
        """Discard the rest of a history."""
        while self._tasks:
            _close(self._tasks.popitem()[1])
        self._ready.clear()
        self._scheduled.clear()


def _close(task: SimTask) -> None:
    """Close a task's coroutine in the task's context, where its `finally` expects to run."""
    # A gracefully ending process discards the very task that ends it; that one is done anyway.
    if task is not asyncio.current_task(task.get_loop()):
        task.context.run(_close_coroutine, task.get_coro())


def _close_coroutine(coroutine: Coroutine[Any, Any, Any]) -> None:
    """Close a coroutine, even if its `finally` awaits something."""
    for _ in range(1000):
        try:
            coroutine.close()
        except RuntimeError:
            continue  # it awaited while it was closed: once more
        except BaseException:  # noqa: BLE001 - it is dead, whatever it says
            return
        return


def _tell(answer: asyncio.Future[Any], result: Any) -> None:
    if not answer.done():
        answer.set_result(result)


def _tell_error(answer: asyncio.Future[Any], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
