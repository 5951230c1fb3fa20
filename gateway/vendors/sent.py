"""Records whether a submit sent a request that the vendor may bill.

The engine checks this before it submits the same task again.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

import attrs

_CURRENT: ContextVar["Sent | None"] = ContextVar("sent", default=None)


@attrs.define
class Sent:
    """The billable requests of one submit."""

    is_billable: bool = False
    """Whether the body of at least one such request may have been sent."""


@contextlib.contextmanager
def recorded() -> Iterator[Sent]:
    """Yield the record of the block's requests, including those of tasks it starts."""
    sent = Sent()
    before = _CURRENT.set(sent)
    try:
        yield sent
    finally:
        _CURRENT.reset(before)


def note_billable() -> None:
    """Record that the body of a billable request begins to be sent."""
    sent = _CURRENT.get()
    if sent is not None:
        sent.is_billable = True
