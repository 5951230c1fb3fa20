"""`python -m tests.proof.fuzz --inputs 100000`: prints the outcomes; exit code 1 on a finding."""

import argparse
import sys
import time

import structlog
from rich.console import Console
from rich.table import Table

from tests.proof.fuzz import campaign, fuzzed_gateway, growth, kinds, readers, slow_files

_GROWN_BYTES = 4_000_000
_READERS = 400
_ORDINARY_FILES = 100


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0, help="another one gives other inputs")
    wanted = parser.parse_args()
    structlog.configure(processors=[_drop])
    began = time.perf_counter()
    with kinds.opened() as every:
        tallies = [
            campaign.run(kind, -(-wanted.inputs * kind.share // 100), first_seed=wanted.seed)
            for kind in every
        ]
    _print(tallies, time.perf_counter() - began)
    slow = _grown()
    unread, kept_out = _read(wanted.seed), _checked(wanted.seed)
    return 1 if slow or unread or kept_out or any(tally.failures for tally in tallies) else 0


def _read(seed: int) -> list[str]:
    """Run clients that read badly on both servers, and print the violations."""
    console, every = Console(width=110), []
    for server in ("hypercorn", "uvicorn"):
        outcomes, findings = readers.run(server, _READERS, seed=seed)
        ends = ", ".join(f"{name}: {count:,}" for name, count in sorted(outcomes.items()))
        console.print(f"{_READERS} clients of {server} read: {ends}; {len(findings)} findings")
        every += findings
    for finding in every:
        console.print(finding, markup=False)
    return every


def _checked(seed: int) -> list[str]:
    """Send ordinary files beside slow ones, and print the violations."""
    console = Console(width=110)
    outcomes, findings = slow_files.run(_ORDINARY_FILES, seed=seed)
    ends = ", ".join(f"{name}: {count:,}" for name, count in sorted(outcomes.items()))
    console.print(f"Files beside slow ones: {ends}; {len(findings)} findings")
    for finding in findings:
        console.print(finding, markup=False)
    return findings


def _grown() -> list[growth.Finding]:
    """Grow every parser's inputs and print which take more than linear time."""
    found: list[growth.Finding] = []
    number = 0
    with fuzzed_gateway.opened() as site:
        for grown in [*growth.parsers(body_bytes=_GROWN_BYTES), *growth.routes(site)]:
            for shape in growth.shapes(grown):
                number += 1
                finding = growth.super_linear(grown, shape)
                found += [finding] if finding else []
    console = Console(width=110)
    console.print(f"{number:,} shapes of input grown, {len(found)} in more than linear time")
    for finding in found:
        console.print(str(finding), markup=False)
    return found


def _drop(logger, method, event):
    raise structlog.DropEvent


def _print(tallies: list[campaign.Tally], seconds: float) -> None:
    table = Table("input", "number", "outcomes", "5xx and other findings")
    for tally in tallies:
        outcomes = ", ".join(f"{name}: {count:,}" for name, count in sorted(tally.outcomes.items()))
        table.add_row(tally.kind, f"{tally.inputs:,}", outcomes, str(len(tally.failures)))
    total = sum(tally.inputs for tally in tallies)
    findings = sum(len(tally.failures) for tally in tallies)
    table.add_row("all", f"{total:,}", f"in {seconds:.0f} s", str(findings))
    console = Console(width=110)
    console.print(table)
    for tally in tallies:
        for failure in tally.failures:
            console.print(f"{tally.kind}: {failure}", markup=False)


if __name__ == "__main__":
    sys.exit(main())
