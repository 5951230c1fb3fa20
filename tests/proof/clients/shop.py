"""The shop of the clients: the embedded chain, `gateway serve` on it, and a tap."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import attrs
from eth_account import Account

from gateway import usdc
from gateway.domain.eip3009 import BASE
from gateway_demo.chain import PlayChain
from gateway_demo.tour.client import Client, open_session
from gateway_demo.tour.place import Place
from gateway_demo.tour.processes import HOST, Child, choose_port
from tests.patience import PATIENCE_S
from tests.proof.clients.tap import Tap, tapping

PRICE_UNITS = usdc("0.02")  # of `sandbox-image`
FUNDS_UNITS = usdc("1")
_TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"  # topic


@attrs.frozen(kw_only=True)
class Shop:
    """A gateway that sells a picture, as seen by clients and by the chain."""

    chain: PlayChain
    tap: Tap
    wallet: str
    gateway: Child
    port: int

    def task(self, task_id: str) -> dict:
        """Return a task, requested from the gateway without the tap."""
        with open_session() as session:
            return session.get(
                f"http://{HOST}:{self.port}/api/task/{task_id}", timeout=PATIENCE_S
            ).json()

    def customer(self) -> Account:
        """Return a new account with a dollar and no ETH: x402 needs none."""
        account = Account.create()
        self.chain.fund(account.address, eth_wei=0, usdc_units=FUNDS_UNITS)
        return account

    def transfers_of(self, address: str) -> list[tuple[str, str, int]]:
        """Return all transfers of an account: transaction, receiver and units."""
        sender = "0x" + address[2:].lower().rjust(64, "0")
        query = {"fromBlock": "0x0", "address": self.chain.usdc, "topics": [_TRANSFER, sender]}
        return [
            (log["transactionHash"], "0x" + log["topics"][2][-40:], int(log["data"], 16))
            for log in self.chain.rpc.result("eth_getLogs", query)
        ]


@contextlib.asynccontextmanager
async def open_shop(folder: Path, *, settles: bool = True, **more: str) -> AsyncIterator[Shop]:
    """Start the shop; data and log are in `folder`, and `more` are further settings.

    With `settles` off it has no gas, settles nothing, and sells for transfers only.
    """
    port = choose_port(0, "--port")
    # The buyers name Base, which the demo's settings do not.
    with PlayChain(chain_id=BASE.chain_id) as chain:
        async with tapping(port) as tap:
            place = Place(port=port, rpc_port=0, output=folder, folder=folder)
            if settles:
                chain.fund(Account.from_key(place.settlement_key).address, usdc_units=0)
            limits = {"x402": "1000/60s", "direct": "1000/60s", "task": "1000/1s"}
            seen = {"network": BASE.name, "base_url": tap.url, "rpc_urls": chain.rpc_url}
            seen |= {f"limit_{name}": limit for name, limit in limits.items()}
            settings = place.settings | seen | more
            gateway = Child.start("gateway", ["serve"], folder, **settings)
            try:
                _await(gateway, port, "everything" if settles else "transfers")
                yield Shop(chain=chain, tap=tap, wallet=place.wallet, gateway=gateway, port=port)
            finally:
                gateway.stop()


def _await(gateway: Child, port: int, selling: str) -> None:
    url = f"http://{HOST}:{port}"
    with open_session() as session:
        gateway.wait_until(Client(url, session).answers)
        ready = f"{url}/api/ready"
        gateway.wait_until(
            lambda: session.get(ready, timeout=PATIENCE_S).json()["selling"] == selling
        )
