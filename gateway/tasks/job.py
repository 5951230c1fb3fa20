"""The `Job` that is passed to a provider."""

import asyncio
from collections.abc import Mapping

import attrs

from gateway.contracts import Lease
from gateway.domain import OWN_NOTE, WAITS_FOR_MEMORY, Endpoint, Handle
from gateway.errors import SubmitUncertain
from gateway.tasks.resources import Resources

_MAX_NOTE_CHARS = 200
# Id, URLs and facts together. A signed URL has 2,000.
MAX_HANDLE_CHARS = 20_000


class LeaseLost(Exception):
    """Another attempt has the lease, so this one must stop."""


@attrs.define(kw_only=True, eq=False, repr=False)
class AttemptJob:
    """The `contracts.Job` of one attempt."""

    lease: Lease
    endpoint: Endpoint
    resources: Resources
    # When the submit began, in Unix seconds, and whether that is stored.
    sent_at: float
    is_marked: bool
    # The last saved handle.
    handle: Handle | None = None
    # Whether a request went out that the vendor may bill.
    has_sent: bool = False
    # Whether the provider has returned a result.
    has_result: bool = False
    # Progress that is not stored yet.
    unwritten_fraction: float | None = None
    unwritten_note: str | None = None
    # The submit's timeout, which stands still while a call waits for memory.
    limit: asyncio.Timeout | None = None
    # Sandboxed calls that wait for memory now, the note that they hide, and the seconds left then.
    _waits: int = attrs.field(default=0, init=False)
    _note: str = attrs.field(default="", init=False)
    _left_s: float = attrs.field(default=0.0, init=False)
    task_id: str = attrs.field(init=False)
    # 1 to 4.
    attempt: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.task_id = self.lease.task_id
        self.attempt = self.lease.attempt

    async def progress(self, fraction: float, note: str = "") -> None:
        """Show progress in the task."""
        self.show(fraction, note)

    def show(self, fraction: float | None, note: str) -> None:
        """Keep progress until the attempt's heartbeat stores it."""
        if isinstance(fraction, int | float):
            # In this order NaN becomes 0.
            self.unwritten_fraction = float(min(1.0, max(0.0, fraction)))
        if isinstance(note, str) and note:
            shown = note.lstrip(OWN_NOTE)[:_MAX_NOTE_CHARS]
            self._note = shown.encode(errors="replace").decode()
            if not self._waits:
                self.unwritten_note = self._note

    def note_wait(self, more: int) -> None:
        """Show that the task waits for this machine's memory, or its last note again.

        `more` is 1 for another call that waits, -1 for one that no longer does.
        """
        waited, self._waits = self._waits, self._waits + more
        if bool(waited) == bool(self._waits):
            return
        self.unwritten_note = WAITS_FOR_MEMORY if self._waits else self._note
        if self.limit is None or self.limit.expired():
            return
        now = asyncio.get_running_loop().time()
        if self._waits:
            self._left_s = (self.limit.when() or now) - now
            self.limit.reschedule(None)
        else:
            self.limit.reschedule(now + self._left_s)

    @property
    def has_unwritten_progress(self) -> bool:
        """Whether there is progress to store."""
        return self.unwritten_fraction is not None or self.unwritten_note is not None

    def take_progress(self) -> tuple[float | None, str | None]:
        """Return the fraction and the note to store, and clear them."""
        taken = (self.unwritten_fraction, self.unwritten_note)
        self.unwritten_fraction = self.unwritten_note = None
        return taken

    def return_progress(self, fraction: float | None, note: str | None) -> None:
        """Keep what could not be stored, unless there is newer progress."""
        if self.unwritten_fraction is None:
            self.unwritten_fraction = fraction
        if self.unwritten_note is None:
            self.unwritten_note = note

    async def save(self, handle: Handle) -> None:
        """Store a handle; raises `LeaseLost` and `WriteFailed`.

        From now on the job is polled and never submitted again, even if the write fails.
        """
        self.handle = storable_handle(handle)
        if not await self.resources.retry_write(self._save, self.task_id):
            raise LeaseLost

    async def mark(self) -> None:
        """Store that a submit is about to be sent; raises `LeaseLost`."""
        if not await self.resources.queue.begin_submit(self.lease, now=self.sent_at):
            raise LeaseLost
        self.is_marked = True

    async def _save(self) -> bool:
        assert self.handle is not None  # noqa: S101 - `save` has set it
        # A job's deadline counts from its submit, even after a restart.
        if not self.is_marked:
            await self.mark()
        return await self.resources.queue.save_handle(self.lease, self.handle)


def storable_handle(handle: Handle) -> Handle:
    """Return a handle of plain strings that can be stored.

    Raises `SubmitUncertain` if that is impossible: a job has begun but cannot be polled.
    """
    is_whole = isinstance(handle, Handle) and all(
        isinstance(named, Mapping) for named in (handle.urls, handle.facts)
    )
    if not is_whole or not isinstance(handle.id, str | int):
        raise SubmitUncertain("The provider returned a handle without an id.")
    urls = {str(use): str(url) for use, url in handle.urls.items()}
    facts = {str(name): str(value) for name, value in handle.facts.items()}
    texts = (str(handle.id), *urls, *urls.values(), *facts, *facts.values())
    if sum(map(len, texts)) > MAX_HANDLE_CHARS:
        raise SubmitUncertain("The provider returned a handle that is too long.")
    return Handle(id=str(handle.id), urls=urls, facts=facts)


def clamp(asked: object, least: float, most: float) -> float:
    """Return a plugin's seconds within bounds, or `least` if they are not a number."""
    if not isinstance(asked, int | float):
        return least
    # In this order NaN becomes the least.
    return float(min(most, max(least, asked)))
