"""Output stores: durable outputs, links to them, and their deletion."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Protocol

import attrs

from gateway.domain import Result, StoredOutput, StoredResult


class OutputStoreUnavailable(Exception):
    """The disk or the bucket is full, down or refuses access. The outputs themselves are valid."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class StoredFile:
    """One file in the store, possibly incomplete or orphaned."""

    key: str
    # The task that the file was written for.
    task_id: str
    # Whether gateways on a copy of our database, such as a restore drill, also use the file.
    is_shared: bool = False


class OutputStore(Protocol):
    """Stores outputs, and creates expiring links to them."""

    async def save(self, folder: str, result: Result) -> StoredResult:
        """Write outputs durably and hash them. Text becomes an output of its own.

        `folder` is the task's id, a hyphen, and 16 characters of the lease's token. So no two
        attempts share a file, and saving again replaces the files of the same attempt.
        Raises `OutputStoreUnavailable`. The result is paid for, so the gateway saves it again
        later instead of generating it again.
        """
        ...

    async def links(
        self, outputs: Sequence[StoredOutput], *, now: float, expires_at: float
    ) -> list[str]:
        """Return a URL for each output, which expires at `expires_at` (Unix seconds).

        It is absolute, or begins with `/files/` and is relative to the gateway's own address.
        """
        ...

    def open(self, key: str, *, expires: str, signature: str, now: float) -> Path:
        """Return the file behind a link that begins with `/files/`.

        Raises `NotFound` if the link is wrong or has expired, or if the file was deleted.
        """
        ...

    async def read(self, output: StoredOutput) -> bytes:
        """Return an output's bytes. Raises `OutputStoreUnavailable`, also for a deleted one."""
        ...

    async def delete(self, outputs: Sequence[StoredOutput | StoredFile]) -> None:
        """Delete outputs; a missing file is no error. Raises `OutputStoreUnavailable`."""
        ...

    def written_before(self, before: float) -> AsyncIterator[list[StoredFile]]:
        """Yield batches of files last written before a time (Unix seconds), including partial ones.

        Raises `OutputStoreUnavailable`.
        """
        ...

    async def probe(self) -> str:
        """Write, read and delete a small file, and return where.

        Raises `OutputStoreUnavailable`.
        """
        ...
