"""What a provider is given of the attempt it works on."""

from collections.abc import Mapping

import attrs

from gateway.contracts import Lease, TaskQueue
from gateway.domain import Endpoint, Handle
from gateway.errors import SubmitUncertain
from gateway.tasks.resources import retry_write

_MAX_NOTE_CHARS = 200
_MAX_HANDLE_CHARS = 20_000  # id and addresses together; signed ones have 2,000


class LeaseLost(Exception):
    """Another lane has the task: whatever this one does is in vain."""


@attrs.define(kw_only=True)
class AttemptJob:
    """The `contracts.Job` of one attempt."""

    lease: Lease
    endpoint: Endpoint
    queue: TaskQueue
    sent_at: float  # when the submit began
    is_marked: bool  # that is durable
    handle: Handle | None = None  # what was saved last
    has_sent: bool = False  # whether a request went out that the vendor may bill
    is_made: bool = False  # whether there is a result
    shown: float | None = None  # progress that is not written down yet
    note: str | None = None
    task_id: str = attrs.field(init=False)
    attempt: int = attrs.field(init=False)  # 1 to 4

    def __attrs_post_init__(self) -> None:
        self.task_id = self.lease.task_id
        self.attempt = self.lease.attempt

    async def progress(self, fraction: float, note: str = "") -> None:
        """Show in the task how far this attempt is."""
        self.show(fraction, note)

    def show(self, fraction: float | None, note: str) -> None:
        """Keep what is to be shown; the lane's heartbeat writes it down."""
        if isinstance(fraction, int | float):
            self.shown = float(min(1.0, max(0.0, fraction)))  # in this order NaN is 0
        if isinstance(note, str) and note:
            self.note = note[:_MAX_NOTE_CHARS].encode(errors="replace").decode()

    @property
    def is_told(self) -> bool:
        """Whether there is something to be shown that is not written down yet."""
        return self.shown is not None or self.note is not None

    def take_told(self) -> tuple[float | None, str | None]:
        """Return what is to be written down, once."""
        told = (self.shown, self.note)
        self.shown = self.note = None
        return told

    async def save(self, handle: Handle) -> None:
        """Write a handle down; raises `LeaseLost` where the task is somebody else's by now.

        From here on the job is polled and never sent again, whatever the disk says.
        """
        self.handle = checked(handle)
        if not await retry_write(self._save, self.task_id):
            raise LeaseLost

    async def mark(self) -> None:
        """Write down that a submit is about to go out; raises `LeaseLost`."""
        if not await self.queue.begin_submit(self.lease, now=self.sent_at):
            raise LeaseLost
        self.is_marked = True

    async def _save(self) -> bool:
        assert self.handle is not None  # noqa: S101 - `save` has set it
        if not self.is_marked:  # a job's time runs from its submit, restarts included
            await self.mark()
        return await self.queue.save_handle(self.lease, self.handle)


def checked(handle: Handle) -> Handle:
    """Return a handle that can be stored and read again, whatever a plugin put into it.

    Raises `SubmitUncertain` where there is none in it: a job was begun, and is out of reach.
    """
    is_whole = isinstance(handle, Handle) and isinstance(handle.urls, Mapping)
    if not is_whole or not isinstance(handle.id, str | int):
        raise SubmitUncertain("The provider's handle is none.")
    urls = {str(use): str(url) for use, url in handle.urls.items()}
    if sum(map(len, (str(handle.id), *urls, *urls.values()))) > _MAX_HANDLE_CHARS:
        raise SubmitUncertain("The provider's handle is too long.")
    return Handle(id=str(handle.id), urls=urls)


def within(asked: object, least: float, most: float) -> float:
    """Return the seconds a plugin asks for, kept in bounds; the least where it is no number."""
    if not isinstance(asked, int | float):
        return least
    return float(min(most, max(least, asked)))  # in this order NaN is the least
