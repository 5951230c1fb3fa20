"""Many histories on several processes."""

import multiprocessing
import time
from functools import partial

import click

from tests.proof.simulation import mutations
from tests.proof.simulation.history import run_history
from tests.proof.simulation.report import Report

_CHUNK = 50  # seeds a process takes at a time
_PROGRESS_S = 10.0


def run_chunk(seeds: range, mutant: str | None = None) -> Report:
    """Play some histories in this process."""
    report = Report()
    with mutations.applied(mutant) as relaxed:
        for seed in seeds:
            report.add(run_history(seed, relaxed=relaxed))
    return report


def run_many(first: int, count: int, *, processes: int, mutant: str | None = None) -> Report:
    """Play many histories, and print the progress now and then."""
    report, shown = Report(), time.monotonic()
    seeds = range(first, first + count)
    chunks = [seeds[at : at + _CHUNK] for at in range(0, count, _CHUNK)]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for part in pool.imap_unordered(partial(run_chunk, mutant=mutant), chunks):
            for violation in part.violations:
                click.echo(f"broken: {violation}", err=True)
            report.merge(part)
            if time.monotonic() - shown > _PROGRESS_S:
                shown = time.monotonic()
                done, bad = f"{report.histories:,} of {count:,}", len(report.violations)
                click.echo(f"{done} histories, {bad} violations", err=True)
    report.violations.sort()
    return report
