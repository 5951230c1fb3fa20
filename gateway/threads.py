"""Threads for one kind of work, so that another kind of work cannot delay it."""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

Value = TypeVar("Value")


class Threads:
    """At most so many threads of one name. They start when there is work."""

    def __init__(self, name: str, most: int) -> None:
        self._executor = ThreadPoolExecutor(most, thread_name_prefix=name)

    async def run(self, function: Callable[..., Value], *arguments: object) -> Value:
        """Run a function in one of these threads, as `asyncio.to_thread` does in its own."""
        call = partial(contextvars.copy_context().run, function, *arguments)
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    def close(self) -> None:
        """Start no more calls; a running call ends by itself."""
        self._executor.shutdown(wait=False, cancel_futures=True)
