"""The cost of a request with many tasks, client addresses, endpoints and plugins."""

import asyncio
import contextlib
import itertools
import json
import statistics
from collections.abc import Iterator
from pathlib import Path

import attrs
import part_million
from load import ADDRESSES, Load, NextRequest, Target, repeat_here, request_bytes
from place import IS_MILLION, IS_SMOKE, folder, sized
from processes import cpu_s, gateway_process, get, rss_mb, stub_chain
from rich.table import Table

from gateway.store import SqliteStore

_FEW, _MANY_ADDRESSES = 1_000, sized(ADDRESSES, 100)
_MANY_TASKS = 1_000_000 if IS_MILLION else sized(100_000, 2_000)
_ENDPOINTS, _PLUGINS = 300, 16
_POLLED = 1_000  # tasks, spread over all
_CONNECTIONS = sized(16, 1)
_ROUNDS = sized(5, 1)
_SECONDS = sized(0.7, 0.05)
_ADDRESS_HEADER = "X-Forwarded-For"
_BODY = '{"prompt":"A lighthouse at dusk"}'


@attrs.frozen(kw_only=True)
class World:
    """The size of a gateway's data and catalogue."""

    name: str
    tasks: int = _FEW
    addresses: int = _FEW
    endpoints: int = 1


@attrs.frozen
class _Running:
    """The gateway of a world."""

    world: World
    port: int
    pid: int


_WORLDS = (
    World(name=f"{_FEW:,} tasks and addresses, 1 endpoint"),
    World(name=f"{_MANY_TASKS:,} tasks", tasks=_MANY_TASKS),
    World(name=f"{_MANY_ADDRESSES:,} addresses", addresses=_MANY_ADDRESSES),
    World(name=f"{_ENDPOINTS} endpoints of {_PLUGINS} more plugins", endpoints=_ENDPOINTS),
    World(name="all of it", tasks=_MANY_TASKS, addresses=_MANY_ADDRESSES, endpoints=_ENDPOINTS),
)


if IS_SMOKE:
    _WORLDS = _WORLDS[-1:]


def _write_plugins(folder: Path, endpoints: int) -> None:
    """Write plugins that together sell `endpoints` endpoints, as installed distributions."""
    info = folder / "gateway_growth-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gateway-growth\nVersion: 1.0\n")
    names = [f"gateway_growth_{number}" for number in range(_PLUGINS)]
    entries = "".join(f"{name} = {name}\n" for name in names)
    (info / "entry_points.txt").write_text(f"[gateway]\n{entries}")
    for number, name in enumerate(names):
        numbers = f"range({number}, {endpoints}, {_PLUGINS})"
        hook = f"from gateway_bench import selling\nregister_endpoints = selling({numbers})\n"
        (folder / f"{name}.py").write_text(hook)


async def _make_store(data: Path, tasks: int) -> None:
    async with SqliteStore(data / "gateway.db"):
        pass  # makes the schema
    await asyncio.to_thread(part_million.fill, data / "gateway.db", tasks)


@contextlib.contextmanager
def _gateways() -> Iterator[list[_Running]]:
    """Run a gateway for each world within the block."""
    with contextlib.ExitStack() as stack:
        rpc_url = stack.enter_context(stub_chain())
        found = []
        for world in _WORLDS:
            data, plugins = (Path(stack.enter_context(folder())) for _ in range(2))
            asyncio.run(_make_store(data, world.tasks))
            if world.endpoints > 1:
                _write_plugins(plugins, world.endpoints)
            limits = {"client_ip_header": _ADDRESS_HEADER, "limit_x402": "1000000/60s"}
            run = gateway_process(data, rpc_url, plugins=plugins, **limits)
            running = _Running(world, *stack.enter_context(run))
            if json.loads(get(running.port, "/api/health")[1])["endpoints"] < world.endpoints:
                raise RuntimeError(f"{world.name}: fewer endpoints are on sale")
            found.append(running)
        yield found


def _requests(world: World, path: str) -> NextRequest:
    """Return a path's requests, cycling through the addresses; `TASK` becomes a task's id."""
    body = _BODY if path.startswith("/api/x402/") else None
    ended = world.tasks - part_million.WAITING
    made = []
    for n in range(max(world.addresses, _POLLED)):
        task = part_million.WAITING + 1 + n * 7919 % ended
        n_address = n % world.addresses
        address = f"10.0.{n_address // 250}.{n_address % 250}"
        there = path.replace("TASK", part_million.task_id(task))
        made.append(request_bytes(there, body, {_ADDRESS_HEADER: address}))
    return itertools.cycle(made).__next__


_PATHS = {
    "402": ("/api/x402/instant", 402),
    "poll": ("/api/task/TASK", 200),
    "health": ("/api/health", 200),
    "manifest": ("/.well-known/agent-manifest.json", 200),
}


def _ask(running: _Running, what: str, requests: NextRequest, seconds: float) -> Load:
    path, status = _PATHS[what]
    target = Target(name=what, port=running.port, path=path, status=status)
    load = repeat_here(target, [requests] * _CONNECTIONS, seconds)
    if load.wrong:
        raise RuntimeError(f"{running.world.name}, {what}: {load.first_wrong!r}")
    return load


def _visit_all(running: _Running, requests: NextRequest) -> None:
    """Let each address of a world send a request, so that the rate limiter stores them all."""
    asked = 0
    while asked < running.world.addresses:
        asked += _ask(running, "402", requests, _SECONDS).answers


def _cpu_us(running: _Running, what: str, requests: NextRequest) -> float:
    """Return the gateway's CPU time per response, in microseconds."""
    before = cpu_s(running.pid)
    load = _ask(running, what, requests, _SECONDS)
    return (cpu_s(running.pid) - before) / load.answers * 10**6


def _measure() -> tuple[dict[tuple[str, str], list[float]], dict[str, float]]:
    """Return the costs by world and request, in turns, and each gateway's memory afterwards."""
    with _gateways() as gateways:
        requests = {
            (running.world.name, what): _requests(running.world, path)
            for running in gateways
            for what, (path, _) in _PATHS.items()
        }
        for running in gateways:
            _visit_all(running, requests[running.world.name, "402"])
        found: dict[tuple[str, str], list[float]] = {key: [] for key in requests}
        for _ in range(_ROUNDS):
            for what, running in itertools.product(_PATHS, gateways):
                key = running.world.name, what
                found[key].append(_cpu_us(running, what, requests[key]))
        return found, {running.world.name: rss_mb(running.pid) for running in gateways}


async def _store_costs(tasks: int) -> dict[str, float]:
    with folder() as name:
        await _make_store(Path(name), tasks)
        async with SqliteStore(Path(name) / "gateway.db") as store:
            return await part_million.measure(store, tasks)


def _http_table() -> Table:
    found, memory = _measure()
    title = "Growth: the gateway's CPU per response, in µs, and relative to the first row"
    table = Table("", *_PATHS, "memory", title=title)
    base = {what: statistics.median(found[_WORLDS[0].name, what]) for what in _PATHS}
    for world in _WORLDS:
        costs = {what: statistics.median(found[world.name, what]) for what in _PATHS}
        cells = [f"{costs[what]:,.0f} ({costs[what] / base[what]:.2f}x)" for what in _PATHS]
        table.add_row(world.name, *cells, f"{memory[world.name]:.0f} MB")
    return table


def _store_table() -> Table:
    few, many = (asyncio.run(_store_costs(tasks)) for tasks in (_FEW, _MANY_TASKS))
    columns = (f"{_FEW:,} tasks", f"{_MANY_TASKS:,}", "ratio")
    table = Table("", *columns, title="Growth: the store alone, median µs")
    for what, us in few.items():
        table.add_row(what, f"{us:,.0f}", f"{many[what]:,.0f}", f"{many[what] / us:.2f}x")
    return table


def run() -> list[Table]:
    """Measure, and return the tables."""
    return [_http_table(), _store_table()]
