"""The `Job` that a provider is given: the attempt it works on."""

from collections.abc import Mapping

import attrs

from gateway.contracts import Lease
from gateway.domain import Endpoint, Handle
from gateway.errors import SubmitUncertain
from gateway.tasks.resources import Resources

_MAX_NOTE_CHARS = 200
# The id, the addresses and the facts together. Signed addresses have 2,000.
MAX_HANDLE_CHARS = 20_000


class LeaseLost(Exception):
    """Another attempt has the lease of the task, so this attempt must stop."""


@attrs.define(kw_only=True)
class AttemptJob:
    """The `contracts.Job` of one attempt."""

    lease: Lease
    endpoint: Endpoint
    resources: Resources
    # When the submit began, in Unix seconds, and whether that is durable.
    sent_at: float
    is_marked: bool
    # The handle that was saved last.
    handle: Handle | None = None
    # Whether a request went out that the vendor may bill.
    has_sent: bool = False
    # Whether the provider has returned a result.
    has_result: bool = False
    # Progress that is not written down yet.
    unwritten_fraction: float | None = None
    unwritten_note: str | None = None
    task_id: str = attrs.field(init=False)
    # 1 to 4.
    attempt: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.task_id = self.lease.task_id
        self.attempt = self.lease.attempt

    async def progress(self, fraction: float, note: str = "") -> None:
        """Show in the task how far this attempt is."""
        self.show(fraction, note)

    def show(self, fraction: float | None, note: str) -> None:
        """Keep progress until the attempt's heartbeat writes it down."""
        if isinstance(fraction, int | float):
            # In this order NaN becomes 0.
            self.unwritten_fraction = float(min(1.0, max(0.0, fraction)))
        if isinstance(note, str) and note:
            self.unwritten_note = note[:_MAX_NOTE_CHARS].encode(errors="replace").decode()

    @property
    def has_unwritten_progress(self) -> bool:
        """Whether there is progress that is not written down yet."""
        return self.unwritten_fraction is not None or self.unwritten_note is not None

    def take_progress(self) -> tuple[float | None, str | None]:
        """Return the fraction and the note that are to be written down, and forget them."""
        taken = (self.unwritten_fraction, self.unwritten_note)
        self.unwritten_fraction = self.unwritten_note = None
        return taken

    async def save(self, handle: Handle) -> None:
        """Write a handle down; raises `LeaseLost` if another attempt has the task by now.

        From here on the job is polled and never submitted again, even if the write fails: then this
        raises `WriteFailed`.
        """
        self.handle = storable_handle(handle)
        if not await self.resources.retry_write(self._save, self.task_id):
            raise LeaseLost

    async def mark(self) -> None:
        """Write down that a submit is about to go out; raises `LeaseLost`."""
        if not await self.resources.queue.begin_submit(self.lease, now=self.sent_at):
            raise LeaseLost
        self.is_marked = True

    async def _save(self) -> bool:
        assert self.handle is not None  # noqa: S101 - `save` has set it
        # A job's time runs from its submit, also after a restart.
        if not self.is_marked:
            await self.mark()
        return await self.resources.queue.save_handle(self.lease, self.handle)


def storable_handle(handle: Handle) -> Handle:
    """Return a handle that can be stored and read again, whatever a plugin put into it.

    Raises `SubmitUncertain` if that is impossible: a job was begun, and it cannot be polled.
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
    """Return the seconds that a plugin asks for, within bounds; the least if it is no number."""
    if not isinstance(asked, int | float):
        return least
    # In this order NaN becomes the least.
    return float(min(most, max(least, asked)))
