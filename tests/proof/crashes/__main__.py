"""`python -m tests.proof.crashes`: the real server killed under load, compared with the chain."""

import contextlib
import random
import tempfile
import time
from pathlib import Path

import click

from tests.proof.crashes.cycles import Run, crash_and_compare
from tests.proof.crashes.verdict import Verdict


@click.command()
@click.option("--cycles", default=1000, show_default=True, help="How often it is killed.")
@click.option("--seed", type=int, help="Of the dice that choose the moments; a new one without.")
@click.option("--batch", default=1, show_default=True, help="Most payments in a transaction.")
@click.option("--keep", type=click.Path(path_type=Path), help="New folder to work in, kept.")
def main(cycles: int, seed: int | None, batch: int, keep: Path | None) -> None:
    """Kill, restart, compare; print a table, and exit with 1 if anything is wrong."""
    if keep is not None and keep.exists():
        raise click.UsageError(f"{keep} exists; name a new folder")
    seed = random.randrange(2**32) if seed is None else seed
    click.echo(f"seed {seed}")
    started = time.monotonic()

    def tell(cycle: int) -> None:
        if cycle % 50 == 0:
            click.echo(f"killed {cycle} times, {time.monotonic() - started:.0f} s")

    with contextlib.nullcontext(keep) if keep else tempfile.TemporaryDirectory() as folder:
        verdict, run = crash_and_compare(
            Path(folder), cycles=cycles, seed=seed, batch=batch, tell=tell
        )
        batches = run.batches()
    report(verdict, run, cycles, time.monotonic() - started)
    click.echo(f"{'batches of payments':38} {batches:>8}")
    if verdict.problems:
        raise SystemExit(1)


def report(verdict: Verdict, run: Run, cycles: int, seconds: float) -> None:
    """Print the table and the first problems."""
    tally = run.memory.tally()
    rows = {
        "cycles, each a SIGKILL": cycles,
        "purchases": verdict.purchases,
        "requests": tally.total(),
        **{f"  answered {kind}": tally[kind] for kind in sorted(tally)},
        **{f"open at restarts: {kind}": run.found[kind] for kind in sorted(run.found)},
        "transfers on the chain": verdict.transfers,
        **{f"payments {state}": n for state, n in sorted(verdict.payments.items())},
        "lost": len(verdict.lost),
        "doubled": len(verdict.doubled),
        "unpaid": len(verdict.unpaid),
        "stuck": len(verdict.stuck),
        "seconds": round(seconds),
    }
    for name, value in rows.items():
        click.echo(f"{name:38} {value:>8}")
    for problem in verdict.problems[:20]:
        click.echo(problem)


if __name__ == "__main__":
    main()
