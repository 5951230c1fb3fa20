"""The tour: wait for chain and gateway, hand out play money, buy, show balances."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

import attrs

from gateway_demo.tour import models
from gateway_demo.tour.client import Client, open_session
from gateway_demo.tour.place import Place
from gateway_demo.tour.processes import Child
from gateway_demo.tour.purchases import Buyer, dollars, ether
from gateway_demo.tour.screen import Screen, Step
from gateway_demo.tour.wallet import CHAIN_ID, ONE_ETH, USDC, Rpc, Wallet

# Fits in a line, so that the command can be copied.
_LEFT_OUT = "Left out: pictures and speech of real models. To add: make models demo"
# 100 and 10 play USDC.
_BUYER_UNITS, _REFUND_UNITS = 100_000_000, 10_000_000


@attrs.define(kw_only=True)
class Tour:
    """One buyer, one gateway, one chain."""

    screen: Screen
    place: Place
    rpc: Rpc
    client: Client
    buyer: Buyer
    settler: Wallet
    refunder: Wallet
    purse: Wallet
    _before: dict[str, int] = attrs.field(factory=dict)

    @classmethod
    @contextmanager
    def open(cls, screen: Screen, place: Place, picture_format: str) -> Iterator[Self]:
        """Open the connections, and close them before the gateway stops."""
        with open_session() as session:
            rpc, client = Rpc(place.rpc_url, session), Client(place.base_url, session)
            buyer = Buyer(
                screen=screen,
                client=client,
                rpc=rpc,
                wallet=Wallet.of(place.buyer_key),
                output=place.output,
                picture_format=picture_format,
            )
            yield cls(
                screen=screen,
                place=place,
                rpc=rpc,
                client=client,
                buyer=buyer,
                settler=Wallet.of(place.settlement_key),
                refunder=Wallet.of(place.refund_key),
                purse=Wallet.of(place.purse_key),
            )

    def await_chain(self, chain: Child, step: Step) -> None:
        """Wait for the chain, then fund the gateway's keys, which pay gas and refunds."""
        chain.wait_until(self.rpc.answers)
        self.rpc.fund(self.settler.address, eth_wei=ONE_ETH, usdc_units=0)
        self.rpc.fund(self.refunder.address, eth_wei=ONE_ETH, usdc_units=_REFUND_UNITS)
        step.fact("RPC", f"{self.place.rpc_url}, chain id {CHAIN_ID}")
        step.fact("USDC", USDC)

    def begin(self, start_gateway: Callable[[], Child]) -> None:
        """Start the gateway, wait for it, then fund the buyer.

        It would sell nothing for ten seconds if it was up before the chain.
        """
        with self.screen.step("Start the gateway") as step:
            start_gateway().wait_until(self.client.answers)
            step.fact("URL", self.place.base_url)
            step.fact("wallet", self.place.wallet)
            for endpoint in self.client.manifest()["availableEndpoints"]:
                step.fact("sells", f"{endpoint['slug']} for {endpoint['price']} USDC")
        with self.screen.step("Give the buyer play money") as step:
            self.rpc.fund(self.buyer.wallet.address, eth_wei=ONE_ETH, usdc_units=_BUYER_UNITS)
            self.rpc.fund(self.purse.address, eth_wei=0, usdc_units=_BUYER_UNITS)
            step.fact("buyer", self.buyer.wallet.address)
            step.fact("has", f"{dollars(_BUYER_UNITS)}, and 1 ETH for gas")
            step.fact("purse", f"{dollars(_BUYER_UNITS)}, for the shop page")
        self._before = self._read_balances()

    def buy(self) -> None:
        """Buy a picture, its edit and data by x402, and a document by direct transfer."""
        self.screen.part("A picture, by x402", "the payment is a signature in a header")
        picture = self.buyer.buy_picture()
        self.screen.part("The same picture, edited", "a prompt and a file in one request")
        self.buyer.edit_picture(picture)
        self.screen.part("A document, by direct transfer", "the transaction's hash is the proof")
        markdown = self.buyer.buy_document()
        self.screen.part("The same document, as data", "a JSON Schema selects the fields")
        self.buyer.extract_data()
        if self._sells_models():
            self._buy_from_models(markdown)
        else:
            self.screen.print(_LEFT_OUT)

    def _sells_models(self) -> bool:
        offers = self.client.manifest()["availableEndpoints"]
        return {offer["slug"] for offer in offers} >= models.SLUGS

    def _buy_from_models(self, markdown: str) -> None:
        """Buy a cut-out, an enlargement, speech and its transcript."""
        buyer = models.ModelBuyer(self.buyer)
        self.screen.part("A photograph without its background", "a real model on this machine")
        buyer.cut_out()
        self.screen.part("The photograph, enlarged", "four times the width and height")
        buyer.enlarge()
        self.screen.part("The document, read aloud", "its first sentences as a sound")
        sound = buyer.read_aloud(markdown)
        self.screen.part("The sound, as text again", "another model writes what it hears")
        buyer.transcribe(sound)

    def show_balances(self) -> None:
        """Show both balances, before and after, and the gas that each side paid."""
        after = self._read_balances()
        self.screen.part("The money", "balances on the chain")
        rows = [
            (name, dollars(before), dollars(after[name]), _format_change(after[name] - before))
            for name, before in self._before.items()
        ]
        self.screen.table(("", "before", "after", "change"), rows)
        self.screen.lines(
            [
                ("gas, transfer", f"{self._describe_gas(self.buyer.wallet)}, paid by the buyer"),
                ("gas, settlement", f"{self._describe_gas(self.settler)}, paid by the gateway"),
            ]
        )

    def _describe_gas(self, wallet: Wallet) -> str:
        return ether(ONE_ETH - self.rpc.wei(wallet.address))

    def _read_balances(self) -> dict[str, int]:
        owners = {"buyer": self.buyer.wallet.address, "gateway's wallet": self.place.wallet}
        return {name: self.rpc.usdc_units(owner) for name, owner in owners.items()}


def _format_change(units: int) -> str:
    return f"+{dollars(units)}" if units > 0 else dollars(units)
