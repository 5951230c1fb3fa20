"""What every lane works with."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import attrs
import structlog

from gateway.contracts import Clock, OutputStore, TaskQueue
from gateway.plugins.catalog import Catalog
from gateway.sandbox.pictures import Pictures
from gateway.tasks.slots import Slots
from gateway.vendors import Outbound

Value = TypeVar("Value")

MAX_DOWNLOAD_BYTES = 64_000_000  # of one output; 25 million pixels of noise have 75
_FETCHES = 4  # results that are downloaded at once, of up to 128 MB each
_KEEP_PAUSES_S = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)  # before something is written once more
_log = structlog.get_logger()


def _links() -> Outbound:
    return Outbound("https://outputs.invalid", max_bytes=MAX_DOWNLOAD_BYTES)  # links only


@attrs.define(kw_only=True)
class Resources:
    """The parts that lanes share."""

    queue: TaskQueue
    catalog: Catalog
    output_store: OutputStore
    now: Clock
    retention_s: float
    backoff_s: float  # before the second attempt; doubles, with jitter
    slots: Slots
    fetching: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(_FETCHES))
    pictures: Pictures = attrs.field(factory=Pictures)
    links: Outbound = attrs.field(factory=_links)  # fetches what providers only link to

    async def close(self) -> None:
        """Hang up, and end the process that looks at pictures."""
        await self.links.close()
        self.pictures.close()


class WriteFailed(Exception):
    """Something was made, and neither disk nor bucket takes it."""


async def retry_write(
    write: Callable[[], Awaitable[Value]], task_id: str, *, on: type[Exception] = Exception
) -> Value:
    """Write until it works: what is made and paid is not made again for a full disk.

    `on`: what is worth another try; any other error is raised at once.

    Raises `WriteFailed` after some minutes.
    """
    for pause_s in (*_KEEP_PAUSES_S, None):
        try:
            return await write()
        except on as error:
            _log.exception("output.not_kept", task=task_id)
            if pause_s is None:
                raise WriteFailed from error
            await asyncio.sleep(pause_s)
    raise AssertionError
