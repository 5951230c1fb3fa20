"""`python -m tests.proof.chaos`: several nodes and their PostgreSQL under many faults at once."""

import contextlib
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import click

from tests.postgres_server import PostgresServer, find_programs
from tests.proof.chaos.campaign import Plan, Trade, run_chaos
from tests.proof.chaos.mutants import KEYS_OF_MUTANTS, MUTANTS
from tests.proof.chaos.releases import NEXT, PRESENT, UPGRADE_MUTANTS, release_of
from tests.proof.chaos.upgrade import run_upgrade
from tests.proof.chaos.verdict import ChaosVerdict


@click.command()
@click.option("--seconds", default=180.0, show_default=True, help="How long there is trouble.")
@click.option("--nodes", default=4, show_default=True, help="How many there are.")
@click.option("--keys", default=8, show_default=True, help="Settlement keys that they divide.")
@click.option("--seed", type=int, help="Of the dice that choose the moments; a new one without.")
@click.option("--keep", type=click.Path(path_type=Path), help="New folder to work in, kept.")
@click.option("--mutants", is_flag=True, help="See instead whether each broken node is caught.")
@click.option("--upgrade", is_flag=True, help="Replace node by node by the next release instead.")
@click.option("--from", "ref", help="With --upgrade: commit or tag of the release before.")
def main(
    seconds: float,
    nodes: int,
    keys: int,
    seed: int | None,
    keep: Path | None,
    mutants: bool,
    upgrade: bool,
    ref: str | None,
) -> None:
    """Inject faults, compare, print a table; exit code 1 if anything is wrong."""
    if keep is not None and keep.exists():
        raise click.UsageError(f"{keep} exists; name a new folder")
    seed = random.randrange(2**32) if seed is None else seed
    click.echo(f"seed {seed}")
    with _server() as server:
        if mutants:
            names, is_caught = (
                (UPGRADE_MUTANTS, _is_upgrade_caught) if upgrade else (MUTANTS, _is_caught)
            )
            missed = [name for name in names if not is_caught(name, server, nodes, seed)]
            raise SystemExit(1 if missed else 0)
        started = time.monotonic()
        with contextlib.nullcontext(keep) if keep else tempfile.TemporaryDirectory() as path:
            folder = Path(path)
            if upgrade:
                folder.mkdir(exist_ok=True)
                before = release_of(ref, folder) if ref else PRESENT
                upgraded, trade = run_upgrade(
                    folder / "nodes", server, (before, NEXT), seed=seed, nodes=nodes, keys=keys
                )
                verdict, problems = upgraded.chaos, upgraded.problems
            else:
                plan = Plan(seconds=seconds)
                verdict, trade = run_chaos(folder, server, plan, seed=seed, nodes=nodes, keys=keys)
                problems = verdict.problems
    _report(verdict, trade, time.monotonic() - started)
    for problem in problems[:20]:
        click.echo(problem)
    if problems:
        raise SystemExit(1)


@contextlib.contextmanager
def _server() -> Iterator[PostgresServer]:
    programs = find_programs()
    if programs is None:
        raise click.UsageError("PostgreSQL is not installed: apt-get install postgresql")
    server = PostgresServer(programs)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def _is_caught(name: str, server: PostgresServer, nodes: int, seed: int) -> bool:
    """Run broken nodes for a while, and return whether the verdict catches them."""
    with tempfile.TemporaryDirectory() as folder:
        # Some fail during a start, while others work. So nodes live longer than a start takes, even
        # on a busy machine, and none waits for its former life to end.
        plan = Plan(seconds=40, kill_every=(3, 5), under_same_name=0.0)
        # Fewer keys than nodes: they meet at each key.
        keys = KEYS_OF_MUTANTS.get(name, 1)
        verdict, _ = run_chaos(
            Path(folder), server, plan, seed=seed, nodes=nodes, keys=keys, mutant=name
        )
    how = verdict.problems[0] if verdict.problems else "NOT CAUGHT"
    click.echo(f"{name:16} {how}")
    return bool(verdict.problems)


def _is_upgrade_caught(name: str, server: PostgresServer, nodes: int, seed: int) -> bool:
    """Upgrade to or from a faulty release, and return whether the verdict catches it."""
    with tempfile.TemporaryDirectory() as folder:
        verdict, _ = run_upgrade(
            Path(folder), server, UPGRADE_MUTANTS[name], seed=seed, nodes=nodes, way_back=False
        )
    how = verdict.problems[0] if verdict.problems else "NOT CAUGHT"
    click.echo(f"{name:16} {how}")
    return bool(verdict.problems)


def _report(verdict: ChaosVerdict, trade: Trade, seconds: float) -> None:
    tally, money = trade.memory.tally(), verdict.money
    rows = {
        **{name: trade.done[name] for name in sorted(trade.done)},
        "purchases": money.purchases,
        "requests": tally.total(),
        **{f"  answered {kind}": tally[kind] for kind in sorted(tally)},
        "transfers on the chain": money.transfers,
        **{f"payments {state}": n for state, n in sorted(money.payments.items())},
        "lost": len(money.lost),
        "doubled": len(money.doubled),
        "unpaid": len(money.unpaid),
        "stuck": len(money.stuck),
        "tasks taken from a node at work": len(verdict.stolen),
        "nonces given twice": len(verdict.reused),
        "outputs that cannot be fetched": len(verdict.unfetched),
        "seconds": round(seconds),
    }
    for name, value in rows.items():
        click.echo(f"{name:38} {value:>8}")


if __name__ == "__main__":
    main()
