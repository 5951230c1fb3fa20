"""Sales a second of N nodes on one PostgreSQL, and what limits them first, from measured costs.

A model, to read as ±30 %. `make bench-scale` measures the costs and prints the model's table;
`docs/scale.md` has both.
"""

import argparse
import math
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from rich.console import Console
from rich.table import Table

LATEST = Path(__file__).with_name("scale_measured.toml")
NODES, KEYS, CORES = (1, 2, 4, 8, 16), (1, 8, 64), (4, 16)
_MS = 1000.0


@attrs.frozen(kw_only=True)
class Sale:
    """The measured cost of one sale, with its task."""

    node_ms: float  # CPU of all nodes together
    postgres_ms: float
    round_trips: float  # of all nodes to the database
    commits: float  # that write
    notifies: float
    sweep_ms: float = 0.0  # CPU of the leader for another node's sale
    key_ms: float = 0.0  # for which a sale alone uses its settlement key; 0: it needs none


@attrs.frozen(kw_only=True)
class Assumed:
    """The properties of machines, network and chain that are assumed."""

    node_cores: float = 1.05  # that one process can use
    postgres_share: float = 0.7  # of its cores
    round_trip_ms: float = 0.5
    fsync_ms: float = 1.0
    connections: int = 8  # of a node
    nonces: int = 64  # unmined transactions of a key
    block_ms: float = 200.0
    notify_ms: float = 0.5  # CPU of a node for a NOTIFY received
    notify_cores: float = 0.2  # at most, for all NOTIFYs received
    notifies_per_node: float = 80.0  # a second at most: a node collects them
    notify_postgres_ms: float = 0.238  # CPU of PostgreSQL for a NOTIFY
    key_poll_ms: float = 0.117  # CPU of PostgreSQL a second for each key and node that uses it
    nodes_per_key: float = 1.0  # that use it, at most


@attrs.frozen(kw_only=True)
class Cluster:
    """The size of a deployment."""

    nodes: int
    keys: int
    postgres_cores: int


def limits(sale: Sale, assumed: Assumed, cluster: Cluster) -> dict[str, float]:
    """Return the sales a second that each part allows alone."""
    found = {
        "node": _node_limit(sale, assumed, cluster.nodes),
        "PostgreSQL": _postgres_limit(sale, assumed, cluster),
        "connections": cluster.nodes * assumed.connections * _MS / _held_ms(sale, assumed),
    }
    swept = sale.sweep_ms * (cluster.nodes - 1) / cluster.nodes
    if swept:
        found["leader"] = assumed.node_cores * _MS / swept
    if sale.key_ms:
        found["key"] = cluster.keys * _MS / sale.key_ms
        found["chain"] = cluster.keys * assumed.nonces * _MS / assumed.block_ms
    return found


def first_limit(sale: Sale, assumed: Assumed, cluster: Cluster) -> tuple[float, str]:
    """Return the sales a second of a cluster, and the part that allows no more."""
    return min((rate, name) for name, rate in limits(sale, assumed, cluster).items())


def _held_ms(sale: Sale, assumed: Assumed) -> float:
    """Return how long a sale occupies a connection."""
    return sale.round_trips * assumed.round_trip_ms + sale.commits * assumed.fsync_ms


def _postgres_limit(sale: Sale, assumed: Assumed, cluster: Cluster) -> float:
    usable = cluster.postgres_cores * assumed.postgres_share * _MS
    if sale.key_ms:
        users = min(cluster.nodes, assumed.nodes_per_key)
        usable -= cluster.keys * users * assumed.key_poll_ms
    each = sale.postgres_ms + sale.notifies * assumed.notify_postgres_ms
    return max(0.0, usable / each)


def _node_limit(sale: Sale, assumed: Assumed, nodes: int) -> float:
    """Return the rate at which the nodes' cores are full.

    The leader sells less than the others, because it also sweeps.
    """
    each = sale.node_ms + sale.sweep_ms * (nodes - 1) / nodes
    low, high = 0.0, nodes * assumed.node_cores * _MS / each
    for _ in range(60):
        rate = (low + high) / 2
        sent = min(sale.notifies * rate / nodes, assumed.notifies_per_node)
        heard = min(sent * (nodes - 1) * assumed.notify_ms, assumed.notify_cores * _MS)
        is_full = rate / nodes * each + heard > assumed.node_cores * _MS
        low, high = (low, rate) if is_full else (rate, high)
    return low


# -- inputs and output


@attrs.frozen(kw_only=True)
class Inputs:
    """The content of a table file."""

    measured: str
    sales: Mapping[str, Sale]
    assumed: Assumed


def read_inputs(path: Path, changes: Sequence[str] = ()) -> Inputs:
    """Read a table file; `changes` such as `x402.node_ms=6.4` take precedence.

    Raises `ValueError` with a sentence for a change that names nothing.
    """
    tables: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    measured = tables.pop("measured")
    for change in changes:
        name, _, value = change.partition("=")
        table, _, key = name.partition(".")
        kind = Assumed if table == "assumed" else Sale
        if table not in {*tables, "assumed"} or key not in attrs.fields_dict(kind):
            raise ValueError(f"{change}: write TABLE.NAME=NUMBER, such as x402.node_ms=6.4")
        tables.setdefault(table, {})[key] = float(value)
    assumed = Assumed(**tables.pop("assumed", {}))
    sales = {flow: Sale(**costs) for flow, costs in tables.items()}
    return Inputs(measured=measured, sales=sales, assumed=assumed)


def rows(
    inputs: Inputs, nodes: Sequence[int], keys: Sequence[int], cores: Sequence[int]
) -> dict[tuple[str, int, int], list[tuple[int, str]]]:
    """Return rates and their limits by flow, keys (0: none needed) and PostgreSQL's cores."""
    found = {}
    for flow, sale in inputs.sales.items():
        for key_count in keys if sale.key_ms else [0]:
            for core_count in cores:
                cells = []
                for count in nodes:
                    size = Cluster(nodes=count, keys=key_count, postgres_cores=core_count)
                    rate, name = first_limit(sale, inputs.assumed, size)
                    cells.append((math.floor(rate + 0.5), name))
                found[flow, key_count, core_count] = cells
    return found


def lines(
    inputs: Inputs,
    nodes: Sequence[int] = NODES,
    keys: Sequence[int] = KEYS,
    cores: Sequence[int] = CORES,
) -> list[list[str]]:
    """Return the model's table as texts, the head first."""
    found = [["sales a second", "keys", "PostgreSQL", *(f"N = {count}" for count in nodes)]]
    for (flow, key_count, core_count), cells in rows(inputs, nodes, keys, cores).items():
        shown = (f"{rate:,} {name}" for rate, name in cells)
        found.append([flow, str(key_count or "-"), f"{core_count} cores", *shown])
    return found


def cost_lines(inputs: Inputs) -> list[list[str]]:
    """Return the costs of a sale as texts, the head first."""
    found = [["costs of a sale", *inputs.sales]]
    for field in attrs.fields(Sale):
        values = [getattr(sale, field.name) for sale in inputs.sales.values()]
        found.append([f"`{field.name}`", *(f"{value:g}" if value else "-" for value in values)])
    return found


def markdown(texts: Sequence[Sequence[str]]) -> str:
    """Return a table for a page."""
    head, *body = (f"| {' | '.join(line)} |" for line in texts)
    return "\n".join([head, "|---" * len(texts[0]) + "|", *body])


def table(texts: Sequence[Sequence[str]], inputs: Inputs) -> Table:
    """Return a table for a terminal."""
    title = f"Modelled from costs measured on {inputs.measured}; ±30 %"
    found = Table(*texts[0], title=title, title_justify="left")
    for line in texts[1:]:
        found.add_row(*line)
    return found


def _counts(text: str) -> list[int]:
    counts = [int(part) for part in text.split(",")]
    if min(counts) < 1:
        raise ValueError(text)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=Path, default=LATEST, help="a table file with the costs")
    parser.add_argument("--set", action="append", default=[], help="such as x402.node_ms=6.4")
    parser.add_argument("--nodes", type=_counts, default=NODES)
    parser.add_argument("--keys", type=_counts, default=KEYS)
    parser.add_argument("--postgres", type=_counts, default=CORES, help="cores of the server")
    parser.add_argument("--markdown", action="store_true", help="as in docs/scale.md")
    chosen = parser.parse_args()
    try:
        inputs = read_inputs(chosen.inputs, chosen.set)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    texts = lines(inputs, chosen.nodes, chosen.keys, chosen.postgres)
    console = Console(width=max(120, Console().width))
    if chosen.markdown:
        for part in (cost_lines(inputs), texts):
            console.print(f"{markdown(part)}\n", soft_wrap=True)
    else:
        console.print(table(texts, inputs))


if __name__ == "__main__":
    main()
