"""Startup and memory: from process start to the first 200, before and after warm-up."""

import contextlib
import http.client
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import attrs
from place import OLD, environment, folder, sized
from processes import cpu_s, free_port, get, process, rss_mb, stub_chain, wait_listening
from rich.table import Table
from tree import BENCH, HERE, Tree, tree_at

_RUNS = sized(7, 1)
_WARM_RUNS = sized(2, 1)  # runs that also wait for the memory after warm-up
_WARM_S = sized(4.0, 0.5)  # by then everything heavy is imported
_BARE = "a bare Quart application"
# The project's frameworks, and the libraries of its settings and logs.
_NAMED = (
    "import quart, hypercorn.asyncio, hypercorn.config, uvloop, attrs, pluggy, aiosqlite, click, "
    "structlog, typed_settings, msgspec"
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
    """One start of a server."""

    listening_ms: float
    first_200_ms: float
    cpu_ms: float  # of the process, up to the first 200
    before_mb: float  # before the first response
    after_mb: float | None


@attrs.frozen
class _Server:
    """A server that starts; `environ` and `arguments` need its port."""

    name: str
    python: str
    arguments: Callable[[int], list[str]]
    environ: Callable[[int], dict[str, str]]
    log: Path
    warms_up: bool = True


def _gateway(tree: Tree, data: Path, rpc_url: str) -> _Server:
    data.mkdir()

    def environ(port: int) -> dict[str, str]:
        return environment(tree, data_dir=data, rpc_urls=rpc_url, bind=f"127.0.0.1:{port}")

    arguments = ["-m", "gateway", "serve"]
    return _Server(tree.name, tree.python, lambda _: arguments, environ, data / "log")


def _bare(data: Path) -> _Server:
    def arguments(port: int) -> list[str]:
        return [str(BENCH / "bare.py"), "plain", str(port)]

    env = environment()
    return _Server(_BARE, sys.executable, arguments, lambda _: env, data / "log", warms_up=False)


def _start(one: _Server, *, warm: bool) -> Start:
    port = free_port()
    arguments, env = one.arguments(port), one.environ(port)
    began = time.perf_counter()
    with process(arguments, env, core=None, log=one.log, program=one.python) as running:
        wait_listening(port, running)
        listening = time.perf_counter()
        before_mb = rss_mb(running.pid)
        if get(port, "/api/health")[0] != http.client.OK:
            raise RuntimeError(f"{one.name}: /api/health is not well")
        answered, used_ms = time.perf_counter(), cpu_s(running.pid) * 1000
        after_mb = None
        if warm and one.warms_up:
            time.sleep(_WARM_S)
            after_mb = rss_mb(running.pid)
    return Start(
        listening_ms=(listening - began) * 1000,
        first_200_ms=(answered - began) * 1000,
        cpu_ms=used_ms,
        before_mb=before_mb,
        after_mb=after_mb,
    )


def import_alone(imports: str) -> tuple[float, float]:
    """Return the CPU in ms and the memory in MB of a Python that only imports."""
    code = f"import gc; gc.disable(); {imports}{_MEASURED}"
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    cpu_ms, resident_mb = map(float, ran.stdout.split())
    return cpu_ms, resident_mb


def _measure() -> dict[str, list[Start]]:
    """Return the starts by server, in turns, after one of each that compiles."""
    found = defaultdict(list)
    with contextlib.ExitStack() as stack:
        data = Path(stack.enter_context(folder()))
        rpc_url = stack.enter_context(stub_chain())
        trees = [HERE, *([tree_at(OLD)] if OLD else [])]
        servers = [_gateway(tree, data / str(n), rpc_url) for n, tree in enumerate(trees)]
        servers.append(_bare(data))
        for one in servers:
            _start(one, warm=one.warms_up)
        for run in range(_RUNS):
            for one in servers:
                found[one.name].append(_start(one, warm=run < _WARM_RUNS))
    return found


def _add_row(table: Table, name: str, starts: list[Start], bare: list[Start]) -> None:
    median = statistics.median
    cpu_ms = median(start.cpu_ms for start in starts)
    warm = [start.after_mb for start in starts if start.after_mb is not None]
    table.add_row(
        name,
        f"{median(start.listening_ms for start in starts):.0f} ms",
        f"{median(start.first_200_ms for start in starts):.0f} ms",
        f"{cpu_ms:.0f} ms",
        f"[bold]{cpu_ms / median(start.cpu_ms for start in bare):.2f}x[/bold]",
        f"{median(start.before_mb for start in starts):.0f} MB",
        f"{max(warm):.0f} MB" if warm else "",
    )


def run() -> list[Table]:
    """Measure, and return the tables."""
    found = _measure()
    title = f"Start to the first 200 of /api/health, median of {_RUNS}"
    table = Table(
        *("", "listening", "first 200", "CPU until then", "to bare", "memory", "after warm-up"),
        title=f"{title} (Python {sys.version.split()[0]})",
    )
    for name, starts in found.items():
        _add_row(table, name, starts, found[_BARE])
    for name, imports in LIBRARIES.items():
        alone = [import_alone(imports) for _ in range(_WARM_RUNS)]
        cpu_ms, used_mb = (statistics.median(values) for values in zip(*alone, strict=True))
        table.add_row(name, "", "", f"{cpu_ms:.0f} ms", "", f"{used_mb:.0f} MB", "")
    return [table]
