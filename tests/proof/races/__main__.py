"""`python -m tests.proof.races`: every race of rounds.py, 1,000 rounds of 50 requests each."""

import asyncio
import tempfile
import time
from pathlib import Path

import click
import structlog

from tests.proof.races.rounds import RACES
from tests.proof.races.shop import Shop, open_shop


@click.command()
@click.option("--rounds", default=1000, show_default=True, help="Of each race.")
@click.option("--at-once", default=50, show_default=True, help="Requests of a round.")
@click.option("--only", help="Part of a race's name.")
def main(rounds: int, at_once: int, only: str | None) -> None:
    """Race, print a table, and exit with 1 if any round was not exactly one sale."""
    structlog.configure(processors=[_drop])
    if not asyncio.run(_race_all(rounds, at_once, only or "")):
        raise SystemExit(1)


def _drop(logger, method, event):
    raise structlog.DropEvent


async def _race_all(rounds: int, at_once: int, only: str) -> bool:
    click.echo(
        f"{'race':38} {'rounds':>6} {'at once':>7} {'wrong':>5} {'seconds':>8} {'a second':>8}"
    )
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        async with open_shop(Path(folder) / "data") as shop:
            for name, race in RACES.items():
                if only in name:
                    wrong += await _race(shop, name, race, rounds, at_once)
    return wrong == 0


async def _race(shop: Shop, name: str, race, rounds: int, at_once: int) -> int:
    started, problems = time.monotonic(), []
    for number in range(rounds):
        try:
            await race(shop, at_once)
        except Exception as error:  # noqa: BLE001 - told below; the next round is another
            problems.append(f"round {number}: {type(error).__name__} {error}")
    seconds = time.monotonic() - started
    row = f"{rounds:6} {at_once:7} {len(problems):5} {seconds:8.1f} {rounds / seconds:8.1f}"
    click.echo(f"{name:38} {row}")
    for problem in problems[:5]:
        click.echo(f"  {problem}")
    return len(problems)


if __name__ == "__main__":
    main()
