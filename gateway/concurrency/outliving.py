"""Waits for work that goes on when its caller is cancelled."""

import asyncio
from typing import Any, TypeVar

_Value = TypeVar("_Value")


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
