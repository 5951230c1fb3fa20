"""Memory of the server while it accepts 100,000 payments and works them off."""

import contextlib
import os
from pathlib import Path

import uvloop
from load import Target, repeat
from part_direct import next_payment
from place import CLIENT_CORE, folder
from processes import gateway_process, rss_mb, stub_chain
from rich.table import Table

_PAYMENTS = 100_000
_STEPS = 10  # readings on the way
_CLIENTS = 64
_STEP_S = 4.0  # of load between two looks at how many were accepted


def run() -> list[Table]:
    """Measure, and return the table."""
    readings = []
    with contextlib.ExitStack() as stack:
        data = Path(stack.enter_context(folder()))
        rpc_url = stack.enter_context(stub_chain())
        port, pid = stack.enter_context(gateway_process(data, rpc_url))
        target = Target(name="direct", port=port, path="/api/proxy-generate")
        next_request = next_payment()
        readings.append((0, rss_mb(pid)))
        cores, accepted = os.sched_getaffinity(0), 0
        os.sched_setaffinity(0, {CLIENT_CORE})
        try:
            while accepted < _PAYMENTS:
                load = uvloop.run(
                    repeat(target, next_request, connections=_CLIENTS, seconds=_STEP_S)
                )
                accepted += round(load.rate * _STEP_S)
                if load.wrong:
                    raise RuntimeError(f"{load.wrong} payments were refused")
                if accepted >= len(readings) * _PAYMENTS / _STEPS:
                    readings.append((accepted, rss_mb(pid)))
        finally:
            os.sched_setaffinity(0, cores)
    table = Table("payments accepted", "memory", title="Memory over 100,000 payments")
    for accepted, used_mb in readings:
        table.add_row(f"{accepted:,}", f"{used_mb:.0f} MB")
    return [table]
