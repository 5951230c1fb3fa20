"""The command `gateway demo`; the demo itself is in `gateway_demo.tour`."""

import sys
from pathlib import Path

import click

from gateway.cli.terminal import one_sentence
from gateway_demo.tour.guide import run_demo


@click.command()
@click.option("--once", is_flag=True, help="Exit after the purchases.")
@click.option(
    "--open", "open_page", is_flag=True, help="Open the gateway's shop page in the browser."
)
@click.option("--port", default=8402, show_default=True, help="Port of the gateway.")
@click.option("--rpc-port", default=8545, show_default=True, help="Port of the embedded chain.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo-output"),
    show_default=True,
    help="Folder for the results.",
)
@one_sentence
def demo(*, once: bool, open_page: bool, port: int, rpc_port: int, output: Path) -> None:
    """Make four purchases with play money. The chain is embedded."""
    code = run_demo(once=once, port=port, rpc_port=rpc_port, output=output, open_page=open_page)
    sys.exit(code)
