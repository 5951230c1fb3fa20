"""The gateway compared with servers that use the official x402 middleware, in turns in one run.

Their sources are in `peers/`. `make bench-peers` installs them into `.peers`, which git ignores.
"""

import argparse
import contextlib
import http.client
import statistics
import string
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
from load import ADDRESSES, HOW_TO_GET_WRK, Load, Target, first_answer, has_wrk, measure
from part_start import LIBRARIES, import_alone
from peer_servers import ADDRESS_HEADER, Contestant, all_servers
from place import SERVER_CORE, folder, sized
from processes import (
    cpu_s,
    free_port,
    get,
    process,
    rss_mb,
    wait_listening,
    wait_selling,
)
from rich.table import Table
from tables import print_head, print_tables, span

_CONNECTIONS = 16
_BODY = '{"prompt":"A lighthouse at dusk"}'
_CHALLENGE, _POLL = "unpaid 402", "poll of a task"


@attrs.frozen
class Start:
    """A server's startup until its first 200."""

    took_ms: float
    cpu_ms: float
    memory_mb: float


@attrs.frozen
class Running:
    """A running server."""

    port: int
    pid: int
    start: Start


@attrs.frozen
class Round:
    """One round of a server."""

    load: Load
    cpu_us: float  # per response


Rounds = dict[tuple[str, str], list[Round]]
# CPU in ms and memory in MB, by the imports' name.
Imports = dict[str, list[tuple[float, float]]]


@contextlib.contextmanager
def _run(one: Contestant, core: int | None) -> Iterator[Running]:
    """Run a server within the block."""
    with folder() as name:
        port, data = free_port(), Path(name)
        if one.tree is not None:
            one.tree.write_completed_task(data, one.task_id)
        made = one.command(port, data)
        began = time.perf_counter()
        with process(
            made.arguments, made.env, core=core, log=data / "log", program=made.program
        ) as server:
            wait_listening(port, server)
            if get(port, "/api/health")[0] != http.client.OK:
                raise RuntimeError(f"{one.name}: /api/health is not well")
            took_s = time.perf_counter() - began
            used_s, memory_mb = cpu_s(server.pid), rss_mb(server.pid)
            yield Running(port, server.pid, Start(took_s * 1000, used_s * 1000, memory_mb))


def _targets(one: Contestant, port: int) -> list[Target]:
    return [
        Target(
            name=_CHALLENGE,
            port=port,
            path="/api/x402/instant",
            body=_BODY,
            status=402,
            address_header=ADDRESS_HEADER,
        ),
        Target(
            name=_POLL,
            port=port,
            path=f"/api/task/{one.task_id}",
            address_header=ADDRESS_HEADER,
        ),
    ]


def _measure_round(running: Running, target: Target, seconds: float) -> Round:
    before = cpu_s(running.pid)
    load = measure(target, connections=_CONNECTIONS, seconds=seconds)
    if not load.answers:
        raise SystemExit(f"{target}: no answer in {seconds:g} s. Is the machine busy?")
    return Round(load, (cpu_s(running.pid) - before) / load.answers * 10**6)


def _measure_load(
    contestants: Sequence[Contestant], rounds: int, seconds: float
) -> tuple[Rounds, dict[str, float]]:
    """Return the rounds by target and server, and each server's memory afterwards."""
    found: Rounds = defaultdict(list)
    with contextlib.ExitStack() as stack:
        servers = [(one, stack.enter_context(_run(one, SERVER_CORE))) for one in contestants]
        for one, running in servers:
            if one.tree is not None:
                wait_selling(running.port)
            for target in _targets(one, running.port):
                status, body = first_answer(target)
                if status != target.status:
                    error = body.decode(errors="replace")[:300]
                    raise SystemExit(f"{one.name}, {target.name}: status {status}: {error}")
                _measure_round(running, target, sized(1.0, 0.1))
        for _ in range(rounds):
            for which in range(2):
                for one, running in servers:
                    target = _targets(one, running.port)[which]
                    made = _measure_round(running, target, seconds)
                    found[target.name, one.name].append(made)
        return found, {one.name: rss_mb(running.pid) for one, running in servers}


def _measure_starts(
    contestants: Sequence[Contestant], runs: int
) -> tuple[dict[str, list[Start]], Imports]:
    """Return the starts of each server, in turns, on any core, after one that compiles.

    Also the cost of the gateway's libraries alone, in the same turns.
    """
    found, imports = defaultdict(list), defaultdict(list)
    for run in range(runs + 1):
        for one in contestants:
            with _run(one, None) as running:
                if run:
                    found[one.name].append(running.start)
        for name, code in LIBRARIES.items():
            imports[name].append(import_alone(code))
    return found, imports


def _letters(contestants: Sequence[Contestant]) -> dict[str, str]:
    """Return each gateway's letter, which heads its column of ratios."""
    gateways = [one.name for one in contestants if one.tree is not None]
    return dict(zip(gateways, string.ascii_uppercase, strict=False))


def _load_table(target: str, contestants: Sequence[Contestant], found: Rounds) -> Table:
    """Return the table of one request; ratios above 1 are the gateway's wins."""
    client = "wrk" if has_wrk() else "the built-in client"
    letters = _letters(contestants)
    caption = "x: CPU of the server in this row to the gateway's; above 1 the gateway wins."
    if target == _POLL:
        caption += " A Map is no database, so no equal."
    table = Table(
        *("", "a second", "least to most", "p50", "p99", "CPU µs"),
        *(f"{letter} is" for letter in letters.values()),
        title=f"{target}: one core, {_CONNECTIONS} connections of {client}, {ADDRESSES:,} clients",
        caption=caption if has_wrk() else f"{caption} {HOW_TO_GET_WRK}",
    )
    cpu_us = {
        one.name: statistics.median(made.cpu_us for made in found[target, one.name])
        for one in contestants
    }
    for one in contestants:
        loads = [made.load for made in found[target, one.name]]
        rates = [load.rate for load in loads]
        table.add_row(
            _row_name(one, letters, loads, one.poll_from if target == _POLL else ""),
            f"{statistics.median(rates):,.0f}",
            span(rates),
            f"{statistics.median(load.p50_ms for load in loads):.1f} ms",
            f"{statistics.median(load.p99_ms for load in loads):.1f} ms",
            f"{cpu_us[one.name]:,.0f}",
            *(f"{cpu_us[one.name] / cpu_us[name]:.2f}x" for name in letters),
        )
    return table


def _row_name(
    one: Contestant, letters: dict[str, str], loads: Sequence[Load] = (), note: str = ""
) -> str:
    letter = f"{letters[one.name]}: " if one.name in letters else ""
    wrong = sum(load.wrong for load in loads)
    failed = f" [red]({wrong} wrong answers)[/red]" if wrong else ""
    return f"{letter}{one.name}{f' ({note})' if note else ''}{failed}"


def _start_table(
    contestants: Sequence[Contestant],
    starts: dict[str, list[Start]],
    imports: Imports,
    memory: dict[str, float],
) -> Table:
    letters = _letters(contestants)
    title = "Start to the first 200 of /api/health, on any core; memory then, and after all load"
    caption = "x: the start of the server in this row to the gateway's; above 1 the gateway wins."
    ratios = [f"{letter} is" for letter in letters.values()]
    columns = ("", "median", "least to most", *ratios, "CPU", "memory", "after load")
    table = Table(*columns, title=title, caption=caption)
    median = {
        name: statistics.median(start.took_ms for start in found) for name, found in starts.items()
    }
    for one in contestants:
        table.add_row(
            _row_name(one, letters),
            f"{median[one.name]:,.0f} ms",
            span(start.took_ms for start in starts[one.name]),
            *(f"{median[one.name] / median[name]:.2f}x" for name in letters),
            f"{statistics.median(start.cpu_ms for start in starts[one.name]):,.0f} ms",
            f"{statistics.median(start.memory_mb for start in starts[one.name]):.0f} MB",
            f"{memory[one.name]:.0f} MB",
        )
    for name, alone in imports.items():
        cpu_ms, used_mb = (statistics.median(values) for values in zip(*alone, strict=True))
        no_ratios = [""] * (2 + len(letters))
        table.add_row(name, *no_ratios, f"{cpu_ms:,.0f} ms", f"{used_mb:.0f} MB", "")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", type=Path, help="another checkout, measured by turns")
    parser.add_argument("--only", default="", help="servers whose name contains this")
    parser.add_argument("--rounds", type=int, default=sized(5, 1))
    parser.add_argument("--seconds", type=float, default=sized(1.0, 0.1), help="of each round")
    parser.add_argument("--starts", type=int, default=sized(5, 1))
    parser.add_argument("--smoke", action="store_true", help="a few requests only")
    chosen = parser.parse_args()
    with all_servers(chosen.old) as everybody:
        contestants = [one for one in everybody if chosen.only.lower() in one.name.lower()]
        if not contestants:
            parser.error(f"none of these: {', '.join(one.name for one in everybody)}")
        starts, imports = _measure_starts(contestants, chosen.starts)
        found, memory = _measure_load(contestants, chosen.rounds, chosen.seconds)
    tables = [_load_table(target, contestants, found) for target in (_CHALLENGE, _POLL)]
    print_tables(print_head(), [*tables, _start_table(contestants, starts, imports, memory)])
    if all(one.tree is not None for one in everybody):
        print("The peers are not installed: run `make bench-peers`.")


if __name__ == "__main__":
    main()
