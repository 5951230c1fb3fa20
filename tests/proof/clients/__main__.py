"""Prints the matrix of clients: `python -m tests.proof.clients [--only NAME] [--cache DIR]`."""

import asyncio
import sys
import tempfile
from pathlib import Path

import click

from gateway_demo.tour.errors import DemoError
from tests.proof.clients import rows
from tests.proof.clients.places import Skipped, default_cache, prepare
from tests.proof.clients.purchase import Bought, Failed, buy, give_up
from tests.proof.clients.rows import Row
from tests.proof.clients.shop import Shop, open_shop

_HEADINGS = ("client", "version", "speaks", "header", "answers", "task", "settled", "seconds")
_MAX_CHARS = 100
_WIDTHS = (18, 9, 6, 19, 11, 11, 27, 7)


@click.command()
@click.option("--only", multiple=True, metavar="NAME", help="A row to run; may be repeated.")
@click.option(
    "--cache",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of installed clients; by default in the user's cache.",
)
def main(only: tuple[str, ...], cache: Path | None) -> None:
    """Let real clients buy from a real gateway on the embedded chain, one row each."""
    chosen = _chosen(only)
    place = (cache or default_cache()).resolve()
    try:
        with tempfile.TemporaryDirectory(prefix="gateway-clients-") as folder:
            failed = asyncio.run(_run(chosen, place, Path(folder)))
    except DemoError as error:
        raise click.ClickException(f"{error}\n{error.log}") from None
    sys.exit(1 if failed else 0)


def _chosen(only: tuple[str, ...]) -> list[Row]:
    names = [row.name for row in rows.ROWS]
    unknown = [name for name in only if name not in names]
    if unknown:
        raise click.UsageError(f"There is no row {unknown[0]!r}; there are {', '.join(names)}.")
    return [row for row in rows.ROWS if not only or row.name in only]


async def _run(chosen: list[Row], cache: Path, folder: Path) -> int:
    """Print the rows as they finish, and their count; returns the number of failures."""
    counts = {"bought": 0, "failed": 0, "skipped": 0}
    # Every client gets the challenges of both protocols, then a shop without gas.
    for name in ("open", "closed"):
        (folder / name).mkdir()
    async with (
        open_shop(folder / "open", mpp_enabled="true") as shop,
        open_shop(folder / "closed", settles=False, mpp_enabled="true") as closed,
    ):
        _print(_HEADINGS)
        for row in chosen:
            counts[await _row(row, cache, shop, closed)] += 1
    click.echo("\n" + ", ".join(f"{count} {what}" for what, count in counts.items()))
    return counts["failed"]


async def _row(row: Row, cache: Path, shop: Shop, closed: Shop) -> str:
    version = row.packages[0][1] if row.packages else "-"
    try:
        place = await asyncio.to_thread(prepare, row, cache)
        version = place.version
        bought = await buy(place, shop, by_mcp=row.by_mcp)
        refused = await give_up(place, closed, by_mcp=row.by_mcp)
    except Skipped as reason:
        _print((row.name, version, f"skipped: {reason}"))
        return "skipped"
    except Failed as reason:
        _print((row.name, version, f"failed: {reason}"))
        return "failed"
    _print((row.name, version, *_cells(bought)))
    click.echo(f"    without gas: {refused[:_MAX_CHARS]}")
    return "bought"


def _cells(bought: Bought) -> tuple[str, ...]:
    return (
        bought.protocol,
        bought.header,
        " → ".join(map(str, bought.statuses)),
        bought.task_status,
        f"{bought.transaction[:12]}… 1 transfer",
        f"{bought.seconds:7.1f}",
    )


def _print(cells: tuple[str, ...]) -> None:
    padded = [cell.ljust(width) for cell, width in zip(cells, _WIDTHS, strict=False)]
    click.echo("  ".join(padded).rstrip())


if __name__ == "__main__":
    main()
