"""The command `gateway reload`: the running gateway reads its plugins' endpoints again."""

import sys

import click

from gateway.cli.terminal import blank_control_chars, one_sentence
from gateway.settings import load_settings
from gateway.store.data_folder import enter_data
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
    settings = load_settings(needs_wallet=False)
    enter_data(settings)
    done = ask_to_reload(settings, timeout_s=_PATIENCE_S)
    for sentence in done.sentences:
        click.echo(blank_control_chars(sentence), err=not done.is_whole)
    if not done.is_whole:
        sys.exit(1)
