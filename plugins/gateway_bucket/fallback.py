"""Outputs in a bucket, or on disk while the bucket is down.

Outputs stored before the bucket was configured also stay on disk.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import attrs
import structlog

from gateway.contracts.outputs import OutputStore, OutputStoreUnavailable, StoredFile
from gateway.domain import Result, StoredOutput, StoredResult
from gateway.outputs.disk import DiskOutputs
from gateway_bucket.outputs import SCHEME, BucketOutputs

# Seconds without another try after the bucket failed.
_PAUSE_S = 60.0
_log = structlog.get_logger()


@attrs.define
class BucketWithFallback:
    """A bucket and a disk; an output's key has the location. Implements `contracts.OutputStore`.

    So a result that was generated and paid for survives an outage of the bucket.
    """

    bucket: BucketOutputs
    disk: DiskOutputs
    pause_s: float = attrs.field(default=_PAUSE_S, kw_only=True)
    """Seconds without another try after the bucket failed."""
    # By the event loop's clock.
    _paused_until: float = attrs.field(default=0.0, init=False)

    async def save(self, folder: str, result: Result) -> StoredResult:
        """Store outputs in the bucket, or on disk if the bucket fails."""
        clock = asyncio.get_running_loop().time
        if clock() >= self._paused_until:
            try:
                return await self.bucket.save(folder, result)
            except OutputStoreUnavailable as error:
                self._paused_until = clock() + self.pause_s
                _log.error("outputs.bucket_failed", reason=str(error), kept="on the disk")
        return await self.disk.save(folder, result)

    async def links(
        self, outputs: Sequence[StoredOutput], *, now: float, expires_at: float
    ) -> list[str]:
        """Return a link to each output."""
        found = []
        for output in outputs:
            place = self._place_of(output)
            found += await place.links([output], now=now, expires_at=expires_at)
        return found

    def open(self, key: str, *, expires: str, signature: str, now: float) -> Path:
        """Return the file on disk behind a link; raises `NotFound`."""
        return self.disk.open(key, expires=expires, signature=signature, now=now)

    async def read(self, output: StoredOutput) -> bytes:
        """Return an output's bytes."""
        return await self._place_of(output).read(output)

    async def delete(self, outputs: Sequence[StoredOutput | StoredFile]) -> None:
        """Delete outputs from bucket and disk."""
        for output in outputs:
            await self._place_of(output).delete([output])

    async def written_before(self, before: float) -> AsyncIterator[list[StoredFile]]:
        """Yield outputs written before a time (Unix seconds), from disk and bucket."""
        for place in (self.disk, self.bucket):
            async for batch in place.written_before(before):
                yield batch

    async def probe(self) -> str:
        """Write, read and delete a small object in bucket and disk."""
        return f"{await self.bucket.probe()}; while it is down, {await self.disk.probe()}"

    def _place_of(self, output: StoredOutput | StoredFile) -> OutputStore:
        return self.bucket if output.key.startswith(SCHEME) else self.disk
