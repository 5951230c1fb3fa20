"""`python -m tests.proof.simulation.mutants`: how many histories catch each broken rule."""

import argparse
import sys
import time

import attrs
import click

from tests.proof.simulation.history import run_history
from tests.proof.simulation.mutations import MUTANTS, REQUIRED, applied


@attrs.frozen
class Catch:
    """When and how a mutant was caught; without a violation it was not."""

    name: str
    histories: int
    seed: int | None
    violation: str
    seconds: float


def hunt(name: str, *, first_seed: int = 0, cap: int | None = None) -> Catch:
    """Play histories on broken code until one catches it."""
    started, cap = time.monotonic(), cap or MUTANTS[name].cap
    with applied(name) as relaxed:
        for count, seed in enumerate(range(first_seed, first_seed + cap), start=1):
            outcome = run_history(seed, relaxed=relaxed)
            if outcome.violations:
                spent = time.monotonic() - started
                return Catch(name, count, seed, outcome.violations[0], spent)
    return Catch(name, cap, None, "", time.monotonic() - started)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proof.simulation.mutants")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--cap", type=int, help="histories a mutant; else each has its own")
    parser.add_argument("names", nargs="*", choices=[[], *MUTANTS], help="all without any")
    options = parser.parse_args(arguments)
    click.echo(f"{'mutant':<44}{'histories':>9}  {'seed':>6}  caught by")
    catches = []
    for name in options.names or MUTANTS:
        catch = hunt(name, first_seed=options.first_seed, cap=options.cap)
        catches.append(catch)
        click.echo(_line(catch))
    missed = [catch.name for catch in catches if catch.seed is None]
    click.echo(f"{len(catches) - len(missed)} of {len(catches)} caught {' '.join(missed)}")
    click.echo("* with the unique index on direct payments taken away: it alone stops this one")
    return 1 if missed else 0


def _line(catch: Catch) -> str:
    mutant = MUTANTS[catch.name]
    mark = "" if catch.name in REQUIRED else "+ "
    title = mark + mutant.breaks + (" *" if mutant.relaxed else "")
    seed = "-" if catch.seed is None else str(catch.seed)
    how = catch.violation.partition(" ")[0] or "NOT CAUGHT"
    return f"{title:<44}{catch.histories:>9}  {seed:>6}  {how}"


if __name__ == "__main__":
    sys.exit(main())
