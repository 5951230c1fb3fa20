"""Memory of the server while it accepts and completes 100,000 payments."""

import contextlib
from pathlib import Path

from load import Target, repeat_here
from part_direct import next_payment
from place import folder, sized
from processes import gateway_process, rss_mb, stub_chain
from rich.table import Table

_PAYMENTS = sized(100_000, 10)
_STEPS = 10  # readings on the way
_CLIENTS = 64
_STEP_S = sized(4.0, 0.1)  # of load between two readings


def run() -> list[Table]:
    """Measure, and return the table."""
    readings = []
    with contextlib.ExitStack() as stack:
        data = Path(stack.enter_context(folder()))
        rpc_url = stack.enter_context(stub_chain())
        port, pid = stack.enter_context(gateway_process(data, rpc_url))
        target = Target(name="direct", port=port, path="/api/proxy-generate")
        requests = [next_payment()] * _CLIENTS
        readings.append((0, rss_mb(pid)))
        accepted = 0
        while accepted < _PAYMENTS:
            load = repeat_here(target, requests, _STEP_S)
            accepted += load.answers
            if load.wrong:
                raise RuntimeError(f"{load.wrong} payments were refused: {load.first_wrong!r}")
            if accepted >= len(readings) * _PAYMENTS / _STEPS:
                readings.append((accepted, rss_mb(pid)))
    table = Table("payments accepted", "memory", title=f"Memory over {_PAYMENTS:,} payments")
    for accepted, used_mb in readings:
        table.add_row(f"{accepted:,}", f"{used_mb:.0f} MB")
    return [table]
