"""What the workers share: queue, catalogue, output store, slots, and the checks of pictures."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import attrs
import structlog

from gateway.catalog.catalog import Catalog
from gateway.contracts import Clock, OutputStore
from gateway.sandbox.pictures import Pictures
from gateway.store.tasks import SqlQueue
from gateway.tasks.slots import Slots
from gateway.tasks.timing import TaskTiming
from gateway.telemetry.spans import Spans
from gateway.vendors import Outbound

Value = TypeVar("Value")

# Of one output. 25 million pixels of noise have 75 MB.
MAX_DOWNLOAD_BYTES = 64_000_000
# How many results, of up to 128 MB each, are downloaded at once.
_FETCHES = 4
_log = structlog.get_logger()


def make_downloader(*, follows_loopback: bool = False) -> Outbound:
    """Return the client that fetches the links in results."""
    # It follows links only, so its base address is never used.
    return Outbound(
        "https://outputs.invalid", max_bytes=MAX_DOWNLOAD_BYTES, follows_loopback=follows_loopback
    )


class WriteFailed(Exception):
    """A result exists, and neither disk nor bucket takes it."""


@attrs.define(kw_only=True)
class Resources:
    """The parts that all attempts share."""

    queue: SqlQueue
    catalog: Catalog
    output_store: OutputStore
    now: Clock
    # How long results are kept, in seconds.
    retention_s: float
    slots: Slots
    timing: TaskTiming = attrs.field(factory=TaskTiming)
    spans: Spans = attrs.field(factory=Spans)
    fetching: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(_FETCHES))
    pictures: Pictures = attrs.field(factory=Pictures)
    # Downloads the outputs that providers return as links.
    links: Outbound = attrs.field(factory=make_downloader)

    async def close(self) -> None:
        """Close the connections and end the process that checks pictures."""
        await self.links.close()
        self.pictures.close()

    async def retry_write(
        self,
        write: Callable[[], Awaitable[Value]],
        task_id: str,
        *,
        on: type[Exception] = Exception,
    ) -> Value:
        """Write, and repeat it after pauses: a full disk is no reason to generate and pay again.

        Only an error of the class `on` is worth another try; any other error is raised at once.
        Raises `WriteFailed` after the last pause.
        """
        for pause_s in (*self.timing.write_pauses_s, None):
            try:
                return await write()
            except on as error:
                _log.exception("output.not_kept", task=task_id)
                if pause_s is None:
                    raise WriteFailed from error
                await asyncio.sleep(pause_s)
        raise AssertionError
