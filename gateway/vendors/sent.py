"""What went out during one submit: the engine looks here before it has a submit sent again."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

import attrs

_CURRENT: ContextVar["Sent | None"] = ContextVar("sent", default=None)


@attrs.define
class Sent:
    """The requests of one submit that a vendor may bill."""

    is_billable: bool = False  # whether the body of at least one may have gone out


@contextlib.contextmanager
def recorded() -> Iterator[Sent]:
    """Yield the record of what is sent in here, tasks that are started in here included."""
    sent = Sent()
    before = _CURRENT.set(sent)
    try:
        yield sent
    finally:
        _CURRENT.reset(before)


def note_billable() -> None:
    """Write down that the body of a request that may be billed begins to go out."""
    sent = _CURRENT.get()
    if sent is not None:
        sent.is_billable = True
