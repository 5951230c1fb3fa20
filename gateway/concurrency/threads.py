"""Threads for one kind of work, so that another kind of work cannot delay it."""

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

Value = TypeVar("Value")


class Threads:
    """A thread pool with a name. Threads start when there is work."""

    def __init__(self, name: str, most: int) -> None:
        self._executor = ThreadPoolExecutor(most, thread_name_prefix=name)

    async def run(self, function: Callable[..., Value], *arguments: object) -> Value:
        """Run a function in one of these threads, as `asyncio.to_thread` does in its own."""
        call = partial(contextvars.copy_context().run, function, *arguments)
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    def close(self) -> None:
        """Start no more calls; running ones finish."""
        self._executor.shutdown(wait=False, cancel_futures=True)


class DaemonThread(Executor):
    """One thread, for which the end of the process does not wait. A call cannot be cancelled."""

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = (
            queue.SimpleQueue()
        )
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def submit(self, function: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        """Run a function after those before it."""
        ended: Future[Any] = Future()
        # From here on it cannot be cancelled, so the thread can always set it.
        ended.set_running_or_notify_cancel()
        self._calls.put((ended, partial(function, *given, **named)))
        return ended

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - the interface
        """End the thread after its last call."""
        self._calls.put(None)
        if wait:
            self._thread.join()

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            _resolve(*call)
            # Nothing of the call stays alive until the next one.
            del call


def _resolve(ended: "Future[Any]", function: Callable[[], Any]) -> None:
    try:
        ended.set_result(function())
    except BaseException as error:  # noqa: BLE001 - it is raised for the caller
        # Others would end the caller's event loop, or are rejected by its futures.
        is_plain = isinstance(error, Exception) and not isinstance(error, StopIteration)
        ended.set_exception(error if is_plain else RuntimeError(f"{error!r} was raised"))


async def run_in_daemon(function: Callable[[], Value], name: str) -> Value:
    """Run a function in a thread of its own, for which the end of the process does not wait.

    The caller limits how many there are.
    """
    thread = DaemonThread(name)
    ended: Future[Value] = thread.submit(function)
    thread.shutdown(wait=False)
    return await asyncio.wrap_future(ended)
