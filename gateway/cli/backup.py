"""The commands `gateway backup` and `gateway restore`; the copying is in `gateway.store.backup`."""

import time
from pathlib import Path

import click

from gateway.cli.terminal import one_sentence
from gateway.settings import load_settings
from gateway.store import backup

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("backup")
@click.argument("file", type=_FILE)
@one_sentence
def back_up(*, file: Path) -> None:
    """Write a consistent copy of the database to FILE. The gateway may run meanwhile."""
    size = backup.back_up(load_settings(), file)
    click.echo(f"{file}: {size:,} bytes.")


@click.command()
@click.argument("file", type=_FILE)
@one_sentence
def restore(*, file: Path) -> None:
    """Replace the database by the copy FILE. Transfers made until now pay for nothing any more."""
    old = backup.restore(load_settings(), file, now=time.time())
    if old is not None:
        click.echo(f"The previous database is now {old}.")
    click.echo(
        "Restored. Transfers that are on-chain already will not pay for anything; "
        "`gateway transfers unclaimed --hours 0` lists those that the copy does not know."
    )
