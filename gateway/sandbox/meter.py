"""Measures the CPU time of sandboxed calls before a payment, per client."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import attrs


@attrs.define
class Meter:
    """CPU seconds of the sandboxed calls within `metered`."""

    cpu_s: float = 0.0


_current: ContextVar[Meter | None] = ContextVar("meter", default=None)


@contextmanager
def metered(meter: Meter) -> Iterator[None]:
    """Charge sandboxed calls within the block to a meter, including those of tasks it starts.

    Such calls are work before a payment; see `SandboxLimits.children`.
    """
    token = _current.set(meter)
    try:
        yield
    finally:
        _current.reset(token)


def current_meter() -> Meter | None:
    """Return the meter of the current call; None for paid work."""
    return _current.get()
