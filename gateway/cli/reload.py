"""The command `gateway reload`: the running gateway reads its plugins' endpoints again."""

import sys

import click

from gateway.cli.terminal import one_sentence
from gateway.settings import load_settings
from gateway.store.running_process import ask_to_reload

# A reload has half a minute for the plugins, and 15 seconds for the checks of new providers.
_PATIENCE_S = 60.0


@click.command()
@one_sentence
def reload() -> None:
    """Read the files of endpoints again, without a restart.

    Sends SIGHUP to the gateway of this data folder, and shows how it went. With several machines,
    run it on each.
    """
    done = ask_to_reload(load_settings(needs_wallet=False), timeout_s=_PATIENCE_S)
    for sentence in done.sentences:
        click.echo(sentence, err=not done.is_whole)
    if not done.is_whole:
        sys.exit(1)
