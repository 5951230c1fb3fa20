"""Adds up the processor time of sandboxed calls before a payment, for who caused them."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import attrs


@attrs.define
class Meter:
    """Processor seconds of the calls that were made within `metered`."""

    cpu_s: float = 0.0


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
