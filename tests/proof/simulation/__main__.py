"""`python -m tests.proof.simulation --histories 40000`, or one history with its trace."""

import argparse
import sys
import time

import click

from tests.proof.simulation import mutations
from tests.proof.simulation.campaign import run_many
from tests.proof.simulation.history import run_history
from tests.proof.simulation.report import replay


def _run_many(options: argparse.Namespace) -> int:
    """Play many histories; 1 if any broke an invariant."""
    started = time.monotonic()
    report = run_many(
        options.first_seed,
        options.histories,
        processes=options.processes,
        mutant=options.mutant,
    )
    click.echo(report.table(time.monotonic() - started))
    if not report.violations:
        return 0
    click.echo(report.complaints(options.mutant))
    return 1


def _run_one(options: argparse.Namespace) -> int:
    """Play one history and print its trace."""
    with mutations.applied(options.mutant) as relaxed:
        tracing = click.echo if options.trace else None
        outcome = run_history(options.seed, tracing=tracing, relaxed=relaxed)
    for violation in outcome.violations:
        click.echo(f"seed {outcome.seed}: {violation}\n  {replay(outcome.seed, options.mutant)}")
    click.echo(
        f"{len(outcome.violations)} violations, {outcome.steps} steps, digest {outcome.digest}"
    )
    return 1 if outcome.violations else 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proof.simulation", description=__doc__)
    parser.add_argument("--histories", type=int, default=40_000)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, help="play this one only")
    parser.add_argument("--trace", action="store_true", help="with --seed: tell every event")
    parser.add_argument("--mutant", choices=sorted(mutations.MUTANTS), help="break the code so")
    options = parser.parse_args(arguments)
    return _run_one(options) if options.seed is not None else _run_many(options)


if __name__ == "__main__":
    sys.exit(main())
