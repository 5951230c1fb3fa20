"""Direct purchases per second by one, two and four nodes on one PostgreSQL, and by one on SQLite.

Everything shares this machine's CPUs, PostgreSQL too. The comparison shows a purchase's cost, not
the throughput of several machines.
"""

import argparse
import asyncio
import contextlib
import statistics
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
import psycopg
import uvloop
from load import Load, Target, repeat
from part_direct import next_payment
from place import environment, folder, fsync_us, sized
from processes import BENCH, cpu_s, free_port, gateway_process, process, stub_chain, wait_listening
from rich.table import Table
from tables import print_head, print_tables, span

_CLIENTS = sized(64, 4)
_SECONDS = sized(8.0, 0.2)
_ROUNDS = sized(3, 1)
_NODES = (1, 2, 4)


@attrs.frozen(kw_only=True)
class Contestant:
    """Nodes that sell together, and their processes."""

    name: str
    ports: Sequence[int]
    pids: Sequence[int]


@attrs.frozen(kw_only=True)
class Round:
    """One round of a contestant."""

    rate: float
    p50_ms: float
    p99_ms: float
    cpu_us: float


@contextlib.contextmanager
def bucket() -> Iterator[dict[str, object]]:
    """Run the stub bucket; yields the settings for it."""
    port = free_port()
    script = [str(BENCH / "stub_bucket.py"), str(port)]
    with process(script, environment(), core=None) as running:
        wait_listening(port, running)
        yield {
            "outputs_url": "s3://outputs",
            "outputs_endpoint": f"http://127.0.0.1:{port}",
            "outputs_access_key_id": "key",
            "outputs_secret_access_key": "secret",
        }


@contextlib.contextmanager
def _database(url: str) -> Iterator[str]:
    """Create a database on the server, and drop it at the end; yields its URL."""
    name = f"gateway_bench_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f'CREATE DATABASE "{name}"')
        try:
            yield f"{url.rpartition('/')[0]}/{name}"
        finally:
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@contextlib.contextmanager
def _contestant(name: str, nodes: int, **settings: object) -> Iterator[Contestant]:
    with contextlib.ExitStack() as stack:
        rpc_url = stack.enter_context(stub_chain())
        run = []
        for number in range(nodes):
            data = Path(stack.enter_context(folder()))
            named = settings | ({"node": f"node-{number}"} if "database_url" in settings else {})
            run.append(stack.enter_context(gateway_process(data, rpc_url, core=None, **named)))
        yield Contestant(name=name, ports=[p for p, _ in run], pids=[p for _, p in run])


async def _buy(one: Contestant, seconds: float) -> list[Load]:
    """Let all clients buy, each from one of the nodes."""
    clients = _CLIENTS // len(one.ports)
    targets = [Target(name=one.name, port=p, path="/api/proxy-generate") for p in one.ports]
    loads = [repeat(target, [next_payment()] * clients, seconds) for target in targets]
    return list(await asyncio.gather(*loads))


def _sell(one: Contestant, seconds: float) -> Round:
    before = sum(map(cpu_s, one.pids))
    loads = uvloop.run(_buy(one, seconds))
    used_s = sum(map(cpu_s, one.pids)) - before
    if wrong := sum(load.wrong for load in loads):
        error = next(load.first_wrong for load in loads if load.wrong).decode(errors="replace")
        raise SystemExit(f"{one.name}: {wrong} purchases were refused: {error[:300]}")
    return Round(
        rate=sum(load.rate for load in loads),
        p50_ms=statistics.median(load.p50_ms for load in loads),
        p99_ms=max(load.p99_ms for load in loads),
        cpu_us=used_s / sum(load.answers for load in loads) * 10**6,
    )


def _measure(url: str) -> dict[str, list[Round]]:
    """Return the rounds of each contestant. They take turns; only one runs at a time."""
    found = defaultdict(list)
    for _ in range(_ROUNDS):
        with bucket() as files:
            with _contestant("SQLite, 1 node", 1, **files) as one:
                found[one.name].append(_warm_and_sell(one))
            for nodes in _NODES:
                with _database(url) as fresh:
                    settings = files | {"database_url": fresh}
                    name = f"PostgreSQL, {nodes} node{'s' * (nodes > 1)}"
                    with _contestant(name, nodes, **settings) as one:
                        found[one.name].append(_warm_and_sell(one))
    return found


def _warm_and_sell(one: Contestant) -> Round:
    _sell(one, _SECONDS / 8)
    return _sell(one, _SECONDS)


def _table(found: dict[str, list[Round]]) -> Table:
    caption = (
        f"write + fsync here: {fsync_us():,.0f} µs; CPU µs: of all nodes for a purchase and its "
        "task, without PostgreSQL's own"
    )
    title = f"Direct payments accepted over HTTP, {_CLIENTS} clients in all"
    columns = ("", "a second", "least to most", "p50", "p99", "CPU µs", "to SQLite")
    table = Table(*columns, title=title, caption=caption)
    base = statistics.median(one.rate for one in next(iter(found.values())))
    for name, rounds in found.items():
        rate = statistics.median(one.rate for one in rounds)
        table.add_row(
            name,
            f"[bold]{rate:,.0f}[/bold]",
            span(one.rate for one in rounds),
            f"{statistics.median(one.p50_ms for one in rounds):,.0f} ms",
            f"{statistics.median(one.p99_ms for one in rounds):,.0f} ms",
            f"{statistics.median(one.cpu_us for one in rounds):,.0f}",
            f"{rate / base:.2f}x",
        )
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database_url", help="a PostgreSQL whose user may create databases")
    parser.add_argument("--smoke", action="store_true", help="a few purchases only")
    chosen = parser.parse_args()
    console = print_head()
    print_tables(console, [_table(_measure(chosen.database_url))])
