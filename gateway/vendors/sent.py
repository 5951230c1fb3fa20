"""A record of whether one submit sent a request that the vendor may bill.

The engine reads the record before it submits the same task again.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

import attrs

_CURRENT: ContextVar["Sent | None"] = ContextVar("sent", default=None)


@attrs.define
class Sent:
    """The requests of one submit that the vendor may bill."""

    is_billable: bool = False
    """Whether the body of at least one such request may have gone out."""


@contextlib.contextmanager
def recorded() -> Iterator[Sent]:
    """Yield the record of the requests inside the block, those of tasks started in it included."""
    sent = Sent()
    before = _CURRENT.set(sent)
    try:
        yield sent
    finally:
        _CURRENT.reset(before)


def note_billable() -> None:
    """Record that the body of a request that may be billed begins to go out."""
    sent = _CURRENT.get()
    if sent is not None:
        sent.is_billable = True
