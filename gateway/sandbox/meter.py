"""Adds up the processor time of sandboxed calls before a payment, for who caused them."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import attrs


@attrs.define
class Meter:
    """What the calls took that were made within `metered`."""

    # Processor seconds as children reported them, and the time that these calls took.
    cpu_s: float = 0.0
    reported_s: float = 0.0
    # The time of calls that nobody reported about, as they were cancelled.
    unreported_s: float = 0.0


_current: ContextVar[Meter | None] = ContextVar("meter", default=None)


@contextmanager
def metered(meter: Meter) -> Iterator[None]:
    """Charge a meter for each sandboxed call within the block, in tasks that it starts as well.

    Such a call is work before a payment; see `SandboxLimits.children`.
    """
    token = _current.set(meter)
    try:
        yield
    finally:
        _current.reset(token)


def current_meter() -> Meter | None:
    """Return what the present call is charged to; None for paid work."""
    return _current.get()
