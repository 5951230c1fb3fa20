"""What the output_store promise: outputs kept durably, links to them, nothing kept for nobody."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Protocol

import attrs

from gateway.domain import Result, StoredOutput, StoredResult


class OutputStoreUnavailable(Exception):
    """The place of the outputs is full, down or closed to us; the outputs are not at fault."""


@attrs.frozen(kw_only=True)
class Kept:
    """One file that was found: whole or half, wanted or not."""

    key: str
    task_id: str  # of the task it was written for
    is_shared: bool = False  # with gateways on a copy of our database, such as a restore drill


class OutputStore(Protocol):
    """Keeps outputs and hands out links to them that expire."""

    async def save(self, folder: str, result: Result) -> StoredResult:
        """Write outputs durably, hashed; text becomes a Markdown output of its own.

        `folder` is the task's id, a hyphen, and 16 characters of the lease's token: so no two
        lanes write the same file, and saving again replaces what is there.
        Raises `OutputStoreUnavailable`. The result is made and paid for: save it again later,
        do not generate it again.
        """
        ...

    async def links(
        self, outputs: Sequence[StoredOutput], *, now: float, expires_at: float
    ) -> list[str]:
        """Return an address for each output, none of which works after `expires_at`.

        An address is whole, or begins with `/files/` and is below the gateway's own.
        """
        ...

    def open(self, key: str, *, expires: str, signature: str, now: float) -> Path:
        """Return the file behind a link below `/files/`.

        Raises `NotFound` for a wrong, expired or deleted one.
        """
        ...

    async def delete(self, outputs: Sequence[StoredOutput | Kept]) -> None:
        """Remove outputs; those already gone are fine. Raises `OutputStoreUnavailable`."""
        ...

    def written_before(self, before: float) -> AsyncIterator[list[Kept]]:
        """Yield what was last written before a time, halves too, some at a time.

        Raises `OutputStoreUnavailable`.
        """
        ...

    async def probe(self) -> str:
        """Write, read and delete a small file; returns where. Raises `OutputStoreUnavailable`."""
        ...
