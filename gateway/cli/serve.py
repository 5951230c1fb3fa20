"""The command `gateway serve`."""

import gc
from contextlib import nullcontext
from pkgutil import resolve_name

import click

from gateway.cli.terminal import one_sentence
from gateway.concurrency.late_imports import hidden
from gateway.telemetry.log_queue import queued_output
from gateway.web.server.hangups import Hangups, held_hangups

# The plugin's function that opens the settings of a rehearsal.
_REHEARSAL = "gateway_demo.rehearsal:rehearse"


@click.command()
@click.option(
    "--play",
    is_flag=True,
    help="Rehearse with your settings and plugins: an embedded chain, play money, throw-away keys "
    "and a temporary database. Vendors are real.",
)
@queued_output()
@one_sentence
def serve(*, play: bool) -> None:
    """Run the gateway until SIGTERM. Settings come from gateway.toml and GATEWAY_* variables."""
    with held_hangups() as hangups:
        _serve(hangups, is_play=play)


def _serve(hangups: Hangups, *, is_play: bool) -> None:
    # Garbage collection during imports costs 40 ms. The server enables it again.
    gc.disable()
    # Import here, while rich and pydantic are hidden from libraries that use them if installed:
    # `serve` starts 60 ms faster and takes 12 MB less.
    with hidden("rich", "pydantic"):
        from gateway.app import create_app  # noqa: PLC0415
        from gateway.cli.addresses import print_addresses  # noqa: PLC0415
        from gateway.settings import load_settings  # noqa: PLC0415
        from gateway.web.server.serve import serve as serve_until_stopped  # noqa: PLC0415

        opened = resolve_name(_REHEARSAL)() if is_play else nullcontext(load_settings())
    with opened as settings:
        serve_until_stopped(settings, create_app, print_addresses, hangups)
