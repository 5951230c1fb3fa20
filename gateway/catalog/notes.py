"""Notes of a provider's HTTP client for the engine: the last error response, and billable requests.

An adapter converts a response into its own error, which loses detail. So the client records each
error response for the operator, and the engine reads the last one after a failed attempt. Before it
submits the same task again, the engine checks whether a request was sent that the vendor may bill.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

import attrs


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Refusal:
    """A vendor's response with an error status."""

    status: int
    # The vendor's error code, such as `invalid_api_key`, or empty.
    vendor_code: str
    # The vendor's message, unmodified: it may quote a prompt or a key.
    vendor_message: str


@attrs.define(eq=False, repr=False)
class LastResponse:
    """The vendor's last response in one attempt."""

    newest: Refusal | None = None


@attrs.define(eq=False, repr=False)
class Sent:
    """The billable requests of one submit."""

    # Whether the body of at least one such request may have been sent.
    is_billable: bool = False


_LAST: ContextVar[LastResponse | None] = ContextVar("last_response", default=None)
_SENT: ContextVar[Sent | None] = ContextVar("sent", default=None)


def begin_notes() -> None:
    """Start recording responses in the current asyncio task and the tasks it starts."""
    _LAST.set(LastResponse())


def newest_refusal() -> Refusal | None:
    """Return the last response if it was an error; None after a success."""
    note = _LAST.get()
    return note.newest if note is not None else None


def note_refusal(refusal: Refusal | None) -> None:
    """Record the latest response if it is an error. None: a success, or no response yet."""
    note = _LAST.get()
    if note is not None:
        note.newest = refusal


def summarize(head: str, vendor_code: str, vendor_message: str) -> str:
    """Return one line: `status 401 invalid_api_key: Incorrect API key provided.`."""
    head = " ".join(filter(None, (head, vendor_code)))
    return f"{head}: {vendor_message}" if vendor_message else head


@contextlib.contextmanager
def recorded() -> Iterator[Sent]:
    """Yield the record of the block's requests, including those of tasks it starts."""
    sent = Sent()
    before = _SENT.set(sent)
    try:
        yield sent
    finally:
        _SENT.reset(before)


def note_billable() -> None:
    """Record that the body of a billable request begins to be sent."""
    sent = _SENT.get()
    if sent is not None:
        sent.is_billable = True
