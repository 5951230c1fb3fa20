"""Threads for one kind of work, so that another kind of work cannot delay it."""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NoReturn, TypeVar

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
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Callable[[], Value]] = loop.create_future()

    def set_outcome(outcome: Callable[[], Value]) -> None:
        if not ended.cancelled():
            ended.set_result(outcome)

    def work() -> None:
        outcome = _outcome_of(function)
        # The loop may be closed.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(set_outcome, outcome)

    threading.Thread(target=work, name=name, daemon=True).start()
    return (await ended)()


def _outcome_of(function: Callable[[], Value]) -> Callable[[], Value]:
    """Call a function; return what returns or raises the same."""
    try:
        value = function()
    except Exception as error:  # noqa: BLE001 - it is raised where the outcome is called
        return partial(_raise, error)
    return lambda: value


def _raise(error: Exception) -> NoReturn:
    raise error
