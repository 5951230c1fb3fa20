"""Runs the embedded chain as a process, which prints one JSON line once it is ready.

python -m gateway_demo.chain --port 8545 --fund 0x...
"""

import json
import threading

import click
from eth_utils.address import to_checksum_address

from gateway_demo.chain import PlayChain


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8545, show_default=True, help="0 chooses a free port.")
@click.option("--chain-id", default=8453, show_default=True)
@click.option("--fund", "funded", multiple=True, help="An address that gets play ETH and USDC.")
def main(host: str, port: int, chain_id: int, funded: tuple[str, ...]) -> None:
    """Run the embedded chain until it is interrupted."""
    with PlayChain(chain_id=chain_id, host=host, port=port) as chain:
        for address in funded:
            chain.fund(to_checksum_address(address))
        click.echo(json.dumps({"rpc_url": chain.rpc_url, "chain_id": chain_id}))
        threading.Event().wait()


if __name__ == "__main__":
    main()
