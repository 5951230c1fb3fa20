"""Threads for one kind of work, so that another kind of work cannot delay it."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

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


async def run_in_daemon(function: Callable[[], Value], name: str) -> Value:
    """Run a function in a thread of its own, for which the end of the process does not wait.

    The caller limits how many there are.
    """
    ended: Future[Value] = Future()
    # From here on it cannot be cancelled, so the thread can always set it.
    ended.set_running_or_notify_cancel()

    def work() -> None:
        try:
            ended.set_result(function())
        except Exception as error:  # noqa: BLE001 - it is raised for the caller
            ended.set_exception(error)
        except BaseException as error:  # noqa: BLE001 - it would end the caller's event loop
            ended.set_exception(RuntimeError(f"{error!r} was raised"))

    threading.Thread(target=work, name=name, daemon=True).start()
    return await asyncio.wrap_future(ended)
