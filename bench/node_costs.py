"""The costs of a sale by nodes on one PostgreSQL: the inputs of the model in `scale.py`.

Everything runs on this machine, with a PostgreSQL of its own (fsync on). Two nodes sell through
proxies that count round trips (`wire_counts.py`); all buyers buy at one of them, first at the
follower, then at the leader. CPU and calls include the sale's task. `--write` keeps the results as
inputs. `--old` measures another checkout too, by turns.
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import psycopg
import scale
from load import Load, NextRequest, Target, repeat_here
from nodes import bucket
from paid import KEYS, PATHS, wait_quiet
from part_direct import next_payment
from place import environment, folder, fsync_us, sized
from processes import (
    ask_chain,
    cpu_s,
    free_port,
    gateway_process,
    process,
    stub_chain,
    wait_listening,
)
from rich.table import Table
from tables import print_head, print_tables
from tree import BENCH, HERE, Tree, tree_at
from wire_counts import read_counts
from x402_payments import purchases

from tests.postgres_server import PostgresServer, find_programs

# The costs of a sale by the names of `_ROWS`, in columns.
Columns = dict[str, dict[str, float]]
_SECONDS = sized(8.0, 0.2)
_BUYERS = sized(16, 2)  # of two nodes
_MANY_BUYERS = sized(64, 2)  # of one node, to fill its core
_SETTINGS = {"listen_addresses": "", "max_connections": "100", "shared_buffers": "128MB"}
# Sessions report their statistics within this time.
_REPORTED_S = 1.5
_LEADER = """SELECT n.name FROM nodes n JOIN roles r ON r.holder = n.life
             WHERE r.name = 'leader' AND r.until > extract(epoch FROM clock_timestamp())"""
_COMMITS = """SELECT coalesce(sum(count), 0)
              FROM pg_get_wal_stats(%s, pg_current_wal_flush_lsn(), true)
              WHERE "resource_manager/record_type" LIKE 'Transaction/COMMIT%%'"""
_ROWS = {
    "CPU ms of the selling node": "seller_ms",
    "CPU ms of the other node": "other_ms",
    "CPU ms of PostgreSQL": "postgres_ms",
    "round trips, seller": "seller_trips",
    "round trips, other": "other_trips",
    "COMMITs that write": "commits",
    "fsyncs": "fsyncs",
    "WAL KB": "wal_kb",
    "NOTIFYs": "notifies",
    "RPC calls": "rpc_calls",
    "sales a second here": "rate",
}


@attrs.frozen(kw_only=True)
class Node:
    """A running node; `proxy` is the port of its way to the database, if that is counted."""

    name: str
    port: int
    pid: int
    proxy: int | None


@attrs.frozen(kw_only=True)
class Place:
    """The program to measure, and the database's server."""

    tree: Tree
    server: PostgresServer


@attrs.frozen(kw_only=True)
class Shop:
    """Nodes that sell together on a database and a chain."""

    server: PostgresServer
    database: str
    rpc_url: str
    nodes: Sequence[Node]

    def ask(self, sql: str, *values: object) -> Any:
        """Return the only row of a query."""
        with psycopg.connect(self.database, autocommit=True) as db:
            return db.execute(sql.encode(), values or None).fetchone()

    def leader(self) -> str:
        """Return the name of the node that leads."""
        return str(self.ask(_LEADER)[0])

    def postgres_s(self) -> float:
        """Return the CPU time of the server and its sessions so far, in seconds."""
        main = self.server.pid
        ended = Path(f"/proc/{main}/stat").read_text().rpartition(")")[2].split()
        ticks = int(ended[13]) + int(ended[14])  # cutime and cstime of proc(5)
        ended_s = ticks / os.sysconf("SC_CLK_TCK")
        found = Path(f"/proc/{main}/task/{main}/children").read_text().split()
        living_s = 0.0
        for pid in (main, *map(int, found)):
            with contextlib.suppress(OSError):  # it has just ended
                living_s += cpu_s(pid)
        return ended_s + living_s


@attrs.frozen(kw_only=True)
class Moment:
    """All counters at one moment."""

    nodes_s: dict[str, float]
    postgres_s: float
    wire: dict[str, Counter[str]]
    calls: int
    fsyncs: int
    lsn: str

    @classmethod
    def of(cls, shop: Shop) -> "Moment":
        """Read them all."""
        time.sleep(_REPORTED_S)
        calls = Counter(ask_chain(shop.rpc_url, "bench_counts"))
        del calls["settled"]
        fsyncs, lsn = shop.ask("SELECT wal_sync, pg_current_wal_lsn() FROM pg_stat_wal")
        return cls(
            nodes_s={node.name: cpu_s(node.pid) for node in shop.nodes},
            postgres_s=shop.postgres_s(),
            wire={node.name: read_counts(node.proxy) for node in shop.nodes if node.proxy},
            calls=calls.total(),
            fsyncs=fsyncs,
            lsn=lsn,
        )


@contextlib.contextmanager
def _server() -> Iterator[PostgresServer]:
    programs = find_programs()
    if programs is None:
        raise SystemExit("PostgreSQL is not installed: apt-get install postgresql")
    server = PostgresServer(programs, parent="/var/tmp", settings=_SETTINGS)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def _shop(
    place: Place, *, nodes: int, keys: int, rpc_ms: float, delay_ms: float | None
) -> Iterator[Shop]:
    """Run nodes on an empty database; through proxies, if there is a `delay_ms`."""
    server = place.server
    with contextlib.ExitStack() as stack:
        database = stack.enter_context(server.database())
        rpc_url = stack.enter_context(stub_chain())
        settings = stack.enter_context(bucket())
        settings |= {"settlement_key": "", "settlement_keys": ",".join(KEYS[:keys])}
        run = []
        for number in range(nodes):
            proxy, address = None, database
            if delay_ms is not None:
                proxy = stack.enter_context(_proxy(server, delay_ms))
                name = database.partition("?")[0].rpartition("/")[2]
                address = f"postgresql://gateway@127.0.0.1:{proxy}/{name}?sslmode=disable"
            named = settings | {"node": f"node-{number}", "database_url": address}
            data = Path(stack.enter_context(folder()))
            started = gateway_process(data, rpc_url, tree=place.tree, core=None, **named)
            port, pid = stack.enter_context(started)
            run.append(Node(name=f"node-{number}", port=port, pid=pid, proxy=proxy))
        shop = Shop(server=server, database=database, rpc_url=rpc_url, nodes=run)
        with psycopg.connect(database, autocommit=True) as db:
            db.execute("CREATE EXTENSION pg_walinspect")
        ask_chain(rpc_url, "bench_latency", rpc_ms)
        yield shop


@contextlib.contextmanager
def _proxy(server: PostgresServer, delay_ms: float) -> Iterator[int]:
    port = free_port()
    script = [str(BENCH / "wire_counts.py"), str(port), server.socket_path]
    script += ["--delay-ms", str(delay_ms)]
    with process(script, environment(), core=None) as running:
        wait_listening(port, running)
        yield port


def _sell(shop: Shop, flow: str, seller: Node, buyers: int) -> Load:
    """Let buyers buy at one node, and wait until all nodes have finished the tasks."""
    requests: list[NextRequest] = [next_payment()] * buyers
    if flow == "x402":
        requests = [purchases(number, 1 + int(_SECONDS) * 8) for number in range(buyers)]
    target = Target(name=flow, port=seller.port, path=PATHS[flow])
    load = repeat_here(target, requests, _SECONDS)
    for node in shop.nodes:
        wait_quiet(node.pid)
    if load.wrong:
        error = load.first_wrong.decode(errors="replace")[:300]
        raise SystemExit(f"{flow}: {load.wrong} purchases were refused: {error}")
    return load


def _costs(shop: Shop, flow: str, seller: Node, buyers: int) -> dict[str, float]:
    """Return the costs of a sale, by the names of `_ROWS`; of one that is not counted, none."""
    _sell(shop, flow, seller, 2)  # warm
    before = Moment.of(shop)
    load = _sell(shop, flow, seller, buyers)
    after = Moment.of(shop)
    sales = load.answers
    found = {
        "seller_ms": (after.nodes_s[seller.name] - before.nodes_s[seller.name]) * 1000,
        "other_ms": sum(
            (after.nodes_s[node.name] - before.nodes_s[node.name]) * 1000
            for node in shop.nodes
            if node is not seller
        ),
        "postgres_ms": (after.postgres_s - before.postgres_s) * 1000,
        "commits": float(shop.ask(_COMMITS, before.lsn)[0]),
        "fsyncs": after.fsyncs - before.fsyncs,
        "wal_kb": float(shop.ask("SELECT %s::pg_lsn - %s::pg_lsn", after.lsn, before.lsn)[0]) / 1e3,
        "rpc_calls": after.calls - before.calls,
    }
    for name, counts in after.wire.items():
        trips = counts["round_trips"] - before.wire[name]["round_trips"]
        found["seller_trips" if name == seller.name else "other_trips"] = trips
        # Every node receives every one.
        found["notifies"] = counts["notifications"] - before.wire[name]["notifications"]
    return {name: value / sales for name, value in found.items()} | {"rate": load.rate}


@attrs.frozen(kw_only=True)
class Found:
    """All results of a program."""

    columns: Columns  # two nodes, by flow and the node that sells
    alone: Columns  # one node with many buyers, by flow
    one_key_rate: float
    eight_keys_rate: float


# By the name of the program.
_Results = dict[str, Found]


def _measure(server: PostgresServer, trees: Sequence[Tree], rpc_ms: float, rounds: int) -> _Results:
    """Return the medians of the rounds; within one, programs, flows and roles take turns."""
    found: dict[str, list[Found]] = {tree.name: [] for tree in trees}
    for _ in range(rounds):
        for tree in trees:
            found[tree.name].append(_one_round(Place(tree=tree, server=server), rpc_ms))
    return {name: _median(each) for name, each in found.items()}


def _one_round(place: Place, rpc_ms: float) -> Found:
    with _shop(place, nodes=2, keys=8, rpc_ms=rpc_ms, delay_ms=0.0) as shop:
        columns = _two_nodes(shop)
    with _shop(place, nodes=1, keys=8, rpc_ms=rpc_ms, delay_ms=None) as shop:
        alone = _one_node(shop)
    rates = []
    for keys in (1, 8):
        with _shop(place, nodes=1, keys=keys, rpc_ms=0.0, delay_ms=0.5) as shop:
            _sell(shop, "x402", shop.nodes[0], 2)
            rates.append(_sell(shop, "x402", shop.nodes[0], _MANY_BUYERS).rate)
    return Found(columns=columns, alone=alone, one_key_rate=rates[0], eight_keys_rate=rates[1])


def _median(rounds: Sequence[Found]) -> Found:
    return Found(
        columns=_medians([one.columns for one in rounds]),
        alone=_medians([one.alone for one in rounds]),
        one_key_rate=statistics.median(one.one_key_rate for one in rounds),
        eight_keys_rate=statistics.median(one.eight_keys_rate for one in rounds),
    )


def _two_nodes(shop: Shop) -> Columns:
    found = {}
    for flow in PATHS:
        for role in ("follower", "leader"):
            leader = shop.leader()
            seller = next(one for one in shop.nodes if (one.name == leader) == (role == "leader"))
            found[f"{flow}, at the {role}"] = _costs(shop, flow, seller, _BUYERS)
    return found


def _one_node(shop: Shop) -> Columns:
    return {flow: _costs(shop, flow, shop.nodes[0], _MANY_BUYERS) for flow in PATHS}


def _medians(rounds: Sequence[Columns]) -> Columns:
    return {
        column: {name: statistics.median(one[column][name] for one in rounds) for name in costs}
        for column, costs in rounds[0].items()
    }


def _tables(results: _Results, rpc_ms: float) -> list[Table]:
    """Return the costs with the values of all programs in each cell, this tree's first."""
    here = next(iter(results.values()))
    caption = f"{_BUYERS} buyers, RPC {rpc_ms:g} ms, 8 keys; fsync here: {fsync_us():,.0f} µs"
    title = f"The costs of a sale, two nodes, a proxy each: {'; '.join(results)}"
    two = Table("", *here.columns, title=title, caption=caption)
    for title, name in _ROWS.items():
        two.add_row(
            title,
            *(
                _cell(each.columns[column][name] for each in results.values())
                for column in here.columns
            ),
        )
    one = Table(
        "", "node, ms", "PostgreSQL, ms", "a second here", title=f"One node, {_MANY_BUYERS} buyers"
    )
    for flow in here.alone:
        names = ("seller_ms", "postgres_ms", "rate")
        cells = (_cell(each.alone[flow][name] for each in results.values()) for name in names)
        one.add_row(flow, *cells)
    keys = Table("", "a second here", title="x402, one node, database 0.5 ms away")
    keys.add_row("1 key", _cell((each.one_key_rate for each in results.values()), digits=0))
    keys.add_row("8 keys", _cell((each.eight_keys_rate for each in results.values()), digits=0))
    return [two, one, keys]


def _cell(values: Iterable[float], digits: int = 1) -> str:
    return "; ".join(f"{value:.{digits}f}" for value in values)


def _text(found: Found, assumed: dict[str, Any]) -> str:
    """Return the results as a table file for `scale.py`."""
    named = ["git", "-C", str(BENCH), "describe", "--always", "--dirty"]
    commit = subprocess.run(named, capture_output=True, text=True, check=False).stdout.strip()
    lines = [
        "# Written by `make bench-scale`; `bench/scale.py` explains the names.",
        f'measured = "{datetime.now(UTC):%Y-%m-%d}, {commit or "no commit"}"',
    ]
    for flow, alone in found.alone.items():
        both = [found.columns[f"{flow}, at the {role}"] for role in ("follower", "leader")]
        costs = {
            "node_ms": alone["seller_ms"],
            "postgres_ms": alone["postgres_ms"],
            "round_trips": _mean(both, "seller_trips") + _mean(both, "other_trips"),
            "commits": _mean(both, "commits"),
            "notifies": _mean(both, "notifies"),
        }
        if flow == "x402":
            # The other node leads while the buyers are at the follower.
            costs["sweep_ms"] = max(0.0, both[0]["other_ms"] - both[1]["other_ms"])
            # The machine may be full before the key is: then this is too much.
            costs["key_ms"] = 1000 / found.one_key_rate
        lines += ["", f"[{flow}]", *(f"{name} = {value:.4g}" for name, value in costs.items())]
    lines += ["", "[assumed]", *(f"{name} = {value:g}" for name, value in assumed.items())]
    return "\n".join(lines) + "\n"


def _mean(columns: Sequence[dict[str, float]], name: str) -> float:
    return sum(column[name] for column in columns) / len(columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rpc-ms", type=float, default=20.0, help="of each RPC call")
    parser.add_argument(
        "--write", type=Path, help=f"the model's inputs, such as {scale.LATEST.name}"
    )
    parser.add_argument("--rounds", type=int, default=sized(3, 1), help="the median counts")
    parser.add_argument("--old", type=Path, help="another checkout, measured by turns")
    parser.add_argument("--smoke", action="store_true", help="a few purchases only")
    chosen = parser.parse_args()
    console = print_head()
    trees = [HERE, *([tree_at(chosen.old)] if chosen.old else [])]
    with _server() as server:
        results = _measure(server, trees, chosen.rpc_ms, chosen.rounds)
    print_tables(console, _tables(results, chosen.rpc_ms))
    if chosen.write:
        known = attrs.asdict(scale.read_inputs(scale.LATEST).assumed)
        chosen.write.write_text(_text(results[HERE.name], known), "utf-8")
        inputs = scale.read_inputs(chosen.write)
        print_tables(console, [scale.table(scale.lines(inputs), inputs)])


if __name__ == "__main__":
    main()
