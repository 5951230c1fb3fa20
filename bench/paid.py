"""Paid purchases per second, by x402 and by direct transfer, at two RPC latencies.

Signatures are real and prepared in advance. The chain is a stub (`stub_chain.py`).
"""

import argparse
import contextlib
import hashlib
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs
from load import Load, NextRequest, Target, repeat_here
from part_direct import next_payment
from place import folder, sized
from processes import ask_chain, cpu_s, gateway_process, stub_chain
from rich.table import Table
from tables import print_head, print_tables, span
from tree import HERE, Tree, tree_at
from x402_payments import purchases

_READY_A_SECOND = 20  # signed in advance per buyer; a faster buyer signs more
_WARM_S = sized(2.0, 0.1)
# A gateway is idle if it uses less than this share of a core between two polls.
_IDLE_CPU, _POLL_S, _MAX_BACKLOG_S = 0.05, 0.3, 120.0
# The gateway refuses the keys of examples, such as 1.
KEYS = [hashlib.sha256(b"bench %d" % n).hexdigest() for n in range(99)]
PATHS = {"x402": "/api/x402/instant", "direct": "/api/proxy-generate"}


@attrs.frozen
class Contestant:
    """A running gateway and its chain."""

    name: str
    port: int
    pid: int
    rpc_url: str


@attrs.frozen
class Round:
    """One round of a gateway."""

    load: Load
    cpu_s: float
    calls: Counter[str]
    settled: int


@attrs.frozen(kw_only=True)
class Plan:
    """The parameters of the measurement."""

    trees: Sequence[Tree]
    keys: int
    latencies_ms: Sequence[float]
    flows: Sequence[str]
    clients: int
    rounds: int
    seconds: float
    block_ms: int


def _key_settings(tree: Tree, keys: int) -> dict[str, object]:
    """Return the settings for `keys` settlement keys."""
    if keys == 1:
        return {}
    if not tree.knows("settlement_keys"):
        raise SystemExit(f"{tree.name} knows no GATEWAY_SETTLEMENT_KEYS: leave KEYS out")
    return {"settlement_key": "", "settlement_keys": ",".join(KEYS[:keys])}


@contextlib.contextmanager
def _contestants(plan: Plan) -> Iterator[list[Contestant]]:
    """Run each tree's gateway with its own chain within the block."""
    with contextlib.ExitStack() as stack:
        found = []
        for tree in plan.trees:
            for server in tree.servers:
                for keys in sorted({1, plan.keys}) if tree is HERE else [1]:
                    data = Path(stack.enter_context(folder()))
                    rpc_url = stack.enter_context(stub_chain(block_ms=plan.block_ms))
                    settings = server | _key_settings(tree, keys)
                    run = gateway_process(data, rpc_url, tree=tree, **settings)
                    port, pid = stack.enter_context(run)
                    found.append(Contestant(_name(tree, server, keys), port, pid, rpc_url))
        yield found


def _name(tree: Tree, server: Mapping[str, str], keys: int) -> str:
    return ", ".join([tree.name, *server.values(), *([f"{keys} keys"] if keys > 1 else [])])


def wait_quiet(pid: int) -> None:
    """Wait until a gateway has finished its tasks: the others use the same core."""
    deadline, used_s = time.monotonic() + _MAX_BACKLOG_S, -1.0
    while time.monotonic() < deadline:
        before_s, used_s = used_s, cpu_s(pid)
        if before_s >= 0 and used_s - before_s < _IDLE_CPU * _POLL_S:
            return
        time.sleep(_POLL_S)
    raise SystemExit("a gateway is still busy long after its last purchase")


def _buyers(flow: str, clients: int, seconds: float) -> list[NextRequest]:
    if flow == "direct":
        return [next_payment()] * clients
    ready = int(seconds * _READY_A_SECOND) + 1
    return [purchases(buyer, ready) for buyer in range(clients)]


def _sell(one: Contestant, flow: str, clients: int, seconds: float) -> Round:
    """Let the buyers of one gateway buy one after the other."""
    requests = _buyers(flow, clients, seconds)
    target = Target(name=flow, port=one.port, path=PATHS[flow])
    before, began_s = Counter(ask_chain(one.rpc_url, "bench_counts")), cpu_s(one.pid)
    load = repeat_here(target, requests, seconds)
    # A purchase's cost includes its task.
    wait_quiet(one.pid)
    after, used_s = Counter(ask_chain(one.rpc_url, "bench_counts")), cpu_s(one.pid) - began_s
    settled = after.pop("settled") - before.pop("settled")
    if load.wrong:
        error = load.first_wrong.decode(errors="replace")[:300]
        raise SystemExit(f"{one.name}, {flow}: {load.wrong} purchases were refused: {error}")
    return Round(load, used_s, after - before, settled)


def _measure(plan: Plan) -> dict[tuple[str, float, str], list[Round]]:
    """Return the rounds by flow, latency and gateway; the gateways take turns."""
    found = defaultdict(list)
    with _contestants(plan) as contestants:
        for one in contestants:
            for flow in plan.flows:
                _sell(one, flow, plan.clients, _WARM_S)
        for _ in range(plan.rounds):
            for latency_ms in plan.latencies_ms:
                for flow in plan.flows:
                    for one in contestants:
                        ask_chain(one.rpc_url, "bench_latency", latency_ms)
                        sold = _sell(one, flow, plan.clients, plan.seconds)
                        found[flow, latency_ms, one.name].append(sold)
                        ask_chain(one.rpc_url, "bench_latency", 0)
    return found


def _table(plan: Plan, found: dict[tuple[str, float, str], list[Round]]) -> Table:
    blocks = f"every {plan.block_ms} ms" if plan.block_ms else "at once"
    title = f"Paid purchases, {plan.clients} buyers, transactions mined {blocks}"
    columns = (
        "",
        "RPC, ms",
        "a second",
        "least to most",
        "mean",
        "p50",
        "p99",
        "worst",
        "CPU µs",
        "RPC calls",
        "ratio",
    )
    table = Table(*columns, title=title, caption=_calls_each(found))
    baseline = _name(plan.trees[-1], plan.trees[-1].servers[0], 1)
    for (flow, latency_ms, name), rounds in sorted(found.items(), key=lambda row: row[0][:2]):
        rates = [one.load.rate for one in rounds]
        base = statistics.median(one.load.rate for one in found[flow, latency_ms, baseline])
        count = sum(one.load.answers for one in rounds)
        rate = statistics.median(rates)
        table.add_row(
            f"{flow}: {name}",
            f"{latency_ms:g}",
            f"[bold]{rate:,.0f}[/bold]",
            span(rates),
            f"{sum(one.load.mean_ms * one.load.answers for one in rounds) / count:,.0f} ms",
            f"{statistics.median(one.load.p50_ms for one in rounds):,.0f} ms",
            f"{statistics.median(one.load.p99_ms for one in rounds):,.0f} ms",
            f"{max(one.load.worst_ms for one in rounds):,.0f} ms",
            f"{sum(one.cpu_s for one in rounds) / count * 10**6:,.0f}",
            f"{sum(sum(one.calls.values()) for one in rounds) / count:.1f}",
            f"{rate / base:.2f}x",
        )
    return table


def _calls_each(found: dict[tuple[str, float, str], list[Round]]) -> str:
    """Return the RPC calls per purchase, and how many were answered before their settlement."""
    lines = []
    for (flow, latency_ms, name), rounds in sorted(found.items(), key=lambda row: row[0][:2]):
        calls: Counter[str] = sum((one.calls for one in rounds), Counter())
        count = sum(one.load.answers for one in rounds)
        each = ", ".join(f"{method} {n / count:.1f}" for method, n in calls.most_common(9))
        late = count - sum(one.settled for one in rounds) if flow == "x402" else 0
        held = f"; {late} of {count} answered before they were settled" if late > 0 else ""
        lines.append(f"{flow}, {latency_ms:g} ms, {name}: {each}{held}")
    return "\n".join(lines)


def _plan() -> Plan:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency-ms", type=float, default=50, help="of each RPC call")
    parser.add_argument("--keys", type=int, default=1, help="settlement keys, beside one")
    parser.add_argument("--old", type=Path, help="another checkout, measured by turns")
    parser.add_argument("--flow", choices=PATHS, help="both where none is named")
    parser.add_argument("--clients", type=int, default=sized(64, 2))
    parser.add_argument("--rounds", type=int, default=sized(3, 1))
    parser.add_argument("--seconds", type=float, default=sized(5.0, 0.1))
    parser.add_argument("--block-ms", type=int, default=200, help="2000 as before Denim, 0 at once")
    parser.add_argument("--smoke", action="store_true", help="a few purchases only")
    chosen = parser.parse_args()
    _key_settings(HERE, chosen.keys)  # refused before anything runs
    return Plan(
        trees=[HERE, *([tree_at(chosen.old)] if chosen.old else [])],
        keys=chosen.keys,
        latencies_ms=sorted({0.0, chosen.latency_ms}),
        flows=[chosen.flow] if chosen.flow else list(PATHS),
        clients=chosen.clients,
        rounds=chosen.rounds,
        seconds=chosen.seconds,
        block_ms=chosen.block_ms,
    )


def main() -> None:
    plan = _plan()
    print_tables(print_head(), [_table(plan, _measure(plan))])


if __name__ == "__main__":
    main()
