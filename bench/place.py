"""The environment of the measurements: folders, CPU cores, settings."""

import hashlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tree import HERE, Tree

Amount = TypeVar("Amount", int, float)
# One request each, to test that the measurements still run.
IS_SMOKE = "--smoke" in sys.argv[1:]
# Include a million tasks in `growth`.
IS_MILLION = "--million" in sys.argv[1:]
# Another checkout to measure by turns, for the parts that can.
OLD = Path(sys.argv[sys.argv.index("--old") + 1]) if "--old" in sys.argv[1:-1] else None
CORES = sorted(os.sched_getaffinity(0))
SERVER_CORE, CLIENT_CORE = CORES[0], CORES[-1]  # the same one if there is only one
# No address and no key of an example, which the gateway refuses on a chain that is not young.
WALLET = "0x7cf1a6bd3fb7a9c1a5e2a3f9c2db2f3a4b5c6d7e"
_SETTLEMENT_KEY = hashlib.sha256(b"bench").hexdigest()

sys.path[:0] = HERE.sources  # the checkout may not be installed


def sized(full: Amount, smoke: Amount) -> Amount:
    """Return the amount of work: `full`, or `smoke` with `--smoke`."""
    return smoke if IS_SMOKE else full


def environment(tree: Tree = HERE, **settings: object) -> dict[str, str]:
    """Return the environment of a tree's gateway; `settings` take precedence."""
    inherited = {name: value for name, value in os.environ.items() if "GATEWAY_" not in name}
    chosen = {
        "base_url": "https://gateway.example.com",
        "wallet": WALLET,
        "settlement_key": _SETTLEMENT_KEY,
        # Otherwise the first start creates one, which takes 64 MB for argon2.
        "admin_password_hash": "$argon2id$v=19$m=8,t=1,p=1$" + "c" * 22 + "$" + "a" * 43,
        "limit_x402": "1000000/1s",
        "limit_direct": "1000000/1s",
        "limit_task": "1000000/1s",
        "min_free_disk_mb": 0,
        **settings,
    }
    named = {f"GATEWAY_{name.upper()}": str(value) for name, value in chosen.items()}
    python = {
        "PYTHONPATH": os.pathsep.join(tree.sources),
        # If this is set, every start compiles the gateway again. Images, installed packages and the
        # peers have their bytecode.
        "PYTHONDONTWRITEBYTECODE": "",
    }
    return inherited | python | named


def folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder for databases, on disk: /tmp may be in memory."""
    return tempfile.TemporaryDirectory(
        prefix="gateway-bench-", dir="/var/tmp", ignore_cleanup_errors=True
    )


def median_us(measured: Callable[[], object], repeats: int) -> float:
    """Return the median of a call's duration, in microseconds."""
    times = []
    for _ in range(sized(repeats, 3)):
        began = time.perf_counter()
        measured()
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 10**6


def fsync_us() -> float:
    """Return the cost of writing 4 KB durably on the disk of `folder()`, in microseconds."""
    with folder() as name, (Path(name) / "probe").open("wb", buffering=0) as file:

        def write() -> None:
            file.write(b"\0" * 4096)
            os.fsync(file.fileno())

        return median_us(write, 200)
