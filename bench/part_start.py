"""Startup and memory: from process start to the first 200, before and after warm-up."""

import contextlib
import http.client
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import attrs
from place import environment, folder, sized
from processes import cpu_s, free_port, get, process, rss_mb, stub_chain, wait_listening
from rich.table import Table

_RUNS = sized(7, 1)
_WARM_RUNS = sized(2, 1)  # runs that also wait for the memory after warm-up
_WARM_S = sized(4.0, 0.5)  # by then everything heavy is imported
_FRAMEWORK = "import quart, hypercorn.asyncio, hypercorn.config, uvloop"
# The project's frameworks, and the libraries of its settings and logs.
_NAMED = (
    f"{_FRAMEWORK}, attrs, cattrs, limits.strategies, pluggy, aiosqlite, "
    "click, structlog, typed_settings, msgspec"
)
_WEB3 = "import web3, web3.providers.rpc, eth_account"
# Imports that every start needs, and the memory that every warm-up reaches.
LIBRARIES = {"the gateway's libraries alone": _NAMED, "the same, with web3": f"{_NAMED}; {_WEB3}"}
# Prints the process's CPU in ms and its resident MB (2²⁰ bytes).
_MEASURED = """
import resource
used = resource.getrusage(resource.RUSAGE_SELF)
resident = int(open('/proc/self/statm').read().split()[1]) * resource.getpagesize()
print((used.ru_utime + used.ru_stime) * 1000, resident / 2**20)
"""


@attrs.frozen(kw_only=True)
class Start:
    """One start of `gateway serve`."""

    listening_ms: float
    first_200_ms: float
    cpu_ms: float  # of the process, up to the first 200
    before_mb: float  # before the first response
    after_mb: float | None


def _start(data: Path, rpc_url: str, *, warm: bool) -> Start:
    port = free_port()
    env = environment(data_dir=data, rpc_urls=rpc_url, bind=f"127.0.0.1:{port}")
    began = time.perf_counter()
    with process(["-m", "gateway", "serve"], env, core=None, log=data / "log") as running:
        wait_listening(port, running)
        listening = time.perf_counter()
        before_mb = rss_mb(running.pid)
        if get(port, "/api/health")[0] != http.client.OK:
            raise RuntimeError("/api/health is not well")
        answered, used_ms = time.perf_counter(), cpu_s(running.pid) * 1000
        after_mb = None
        if warm:
            time.sleep(_WARM_S)
            after_mb = rss_mb(running.pid)
    return Start(
        listening_ms=(listening - began) * 1000,
        first_200_ms=(answered - began) * 1000,
        cpu_ms=used_ms,
        before_mb=before_mb,
        after_mb=after_mb,
    )


def _python_ms(code: str) -> float:
    """Return how long Python runs with `code`, from start to exit."""
    began = time.perf_counter()
    with process(["-c", code], environment(), core=None) as running:
        running.wait()
        ended = time.perf_counter()
    return (ended - began) * 1000


def import_alone(imports: str) -> tuple[float, float]:
    """Return the CPU in ms and the memory in MB of a Python that only imports."""
    code = f"import gc; gc.disable(); {imports}{_MEASURED}"
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    cpu_ms, resident_mb = map(float, ran.stdout.split())
    return cpu_ms, resident_mb


def _add_floor(table: Table, starts: Sequence[Start]) -> None:
    """Add the cost of the libraries without the gateway: a lower bound for any start."""
    without_web3, with_web3 = LIBRARIES.values()
    named = [import_alone(without_web3) for _ in range(_RUNS)]
    everything = [import_alone(with_web3) for _ in range(_WARM_RUNS)]
    cpu_ms = statistics.median(start.cpu_ms for start in starts)
    alone_ms = statistics.median(cpu for cpu, _ in named)
    table.add_row("CPU to the first 200", f"[bold]{cpu_ms:.0f} ms[/bold]", "")
    table.add_row("  of its libraries alone, without web3", f"{alone_ms:.0f} ms", "")
    alone_mb = max(resident for _, resident in everything)
    table.add_row("memory of its libraries alone, with web3", f"{alone_mb:.0f} MB", "")


def _measure() -> tuple[list[float], list[float], list[Start]]:
    """Return the times of plain Python, of the bare framework, and of the gateway, in turns."""
    plain, framework, starts = [], [], []
    with contextlib.ExitStack() as stack:
        data = Path(stack.enter_context(folder()))
        rpc_url = stack.enter_context(stub_chain())
        _start(data, rpc_url, warm=True)  # compiles, and makes the database
        for run in range(_RUNS):
            plain.append(_python_ms("pass"))
            framework.append(_python_ms(_FRAMEWORK))
            starts.append(_start(data, rpc_url, warm=run < _WARM_RUNS))
    return plain, framework, starts


def run() -> list[Table]:
    """Measure, and return the tables."""
    plain, framework, starts = _measure()
    median = statistics.median
    first = median(start.first_200_ms for start in starts)
    title = f"Start of `gateway serve`, median of {_RUNS} (Python {sys.version.split()[0]})"
    table = Table("", "measured", "target", title=title)
    table.add_row("python -c pass", f"{median(plain):.0f} ms", "")
    table.add_row("import quart, hypercorn, uvloop", f"{median(framework):.0f} ms", "")
    table.add_row("gateway: listening", f"{median(s.listening_ms for s in starts):.0f} ms", "")
    table.add_row("gateway: first 200 of /api/health", f"[bold]{first:.0f} ms[/bold]", "≤ 300 ms")
    table.add_row("  to the bare framework", f"{first / median(framework):.2f}x", "")
    before = median(start.before_mb for start in starts)
    after = max(start.after_mb for start in starts if start.after_mb is not None)
    table.add_row("memory before the first answer", f"[bold]{before:.0f} MB[/bold]", "≤ 55 MB")
    table.add_row("memory after warm-up", f"[bold]{after:.0f} MB[/bold]", "≤ 90 MB")
    _add_floor(table, starts)
    return [table]
