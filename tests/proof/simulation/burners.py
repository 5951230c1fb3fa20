"""Payers whose code uses up all gas in the block of our settlement, and is gone afterwards.

A plain account gets code by EIP-7702 before our transaction and loses it after it; a wallet with
code is switched and switched back. Some pay nevertheless, so that nothing seems wrong.
"""

import asyncio
import random

import attrs

from gateway.domain.eip3009 import usual_gas
from tests.proof.simulation.ground import Ground
from tests.proof.simulation.paying import SignedHeader, key_of
from tests.proof.simulation.people import RICH_UNITS, Town
from tests.proof.simulation.token import PAYING, UNDOING, Call, burn_call

_POLL_S = 0.25
_GREED_S = 50.0
_SHARE = 0.2  # of the histories
_COUNTED = ("wallet", "burned", "unexplained")


def draw(town: Town, seed: int, *, in_crowd: bool) -> list["Burner"]:
    """Return the burners, drawn separately, so that other histories stay unchanged.

    `in_crowd`: several come with the crowd, for a place in a batch.
    """
    dice = random.Random(f"burners {seed}")
    if dice.random() >= (3 * _SHARE if in_crowd else _SHARE):
        return []
    return [
        Burner(
            town,
            f"burner {n}",
            how=dice.choice((UNDOING, UNDOING, PAYING)),
            is_wallet=not in_crowd and dice.random() < 0.4,
            pays_itself=dice.random() < 0.5,
        )
        for n in range(dice.randint(1, 3 if in_crowd else 1))
    ]


@attrs.define
class Burner:
    """Buys repeatedly, and burns gas whenever our transaction is pending."""

    town: Town
    name: str
    how: int
    is_wallet: bool
    pays_itself: bool  # a third party sends the authorization behind our transaction
    accepted: list[tuple[str, str]] = attrs.field(factory=list)  # (task, prompt) of each 200

    @property
    def address(self) -> str:
        return key_of(self.name)[1]

    async def live(self) -> None:
        town, dice = self.town, self.town.world.dice
        if self.is_wallet:
            town.chain.token.wallets.add(self.address)
        town.chain.fund(self.address, RICH_UNITS)
        await asyncio.sleep(dice.uniform(3.5, 12.0))
        until = town.world.loop.time() + _GREED_S
        while town.world.loop.time() < until:
            signed = town.sign(self.name, seconds=dice.uniform(23.0, 35.0))
            ask = asyncio.ensure_future(
                self.town.buy_with(
                    self.name, signed, f"{self.name} {town.world.now():.0f}", self.accepted
                )
            )
            await self._burn_when_sent(signed, ask)
            await ask
            await asyncio.sleep(dice.choice((1.0, 5.0)))

    async def _burn_when_sent(self, signed: SignedHeader, ask: asyncio.Future[None]) -> None:
        while not ask.done():
            await asyncio.sleep(_POLL_S)
            pending = self.town.chain.pending
            if any(
                self.town.chain.sent.get(waiting.hash) == "gateway"
                and any(call.data == signed.data for call in waiting.calls)
                for waiting in pending
            ):
                self.town.publish(self.name, burn_call(self.address, self.how), is_sticky=True)
                pending.insert(0, pending.pop())
                self.town.publish(self.name, burn_call(self.address, 0), is_sticky=True)
                if self.pays_itself:
                    self.town.publish(self.name, Call(self.address, signed.data), is_sticky=True)
                return


def check(ground: Ground) -> list[str]:
    """A reverted settlement that burned gas counts in full, any other with its excess."""
    found = []
    for row in ground.db.execute("SELECT * FROM sent_transactions WHERE judged = 1"):
        receipt = ground.chain.state.mined.get(row["tx_hash"])
        if receipt is None or row["tx_hash"] not in ground.chain.burned:
            continue
        burned = receipt.fee_wei
        if receipt.succeeded:
            excess = receipt.gas_used - usual_gas(len(ground.chain.batches[row["tx_hash"]]))
            burned = receipt.fee_wei * max(excess, 0) // receipt.gas_used
        counted = row["fee_wei"] if row["failure"] in _COUNTED else 0
        if (counted or 0) < burned:
            found.append(f"UNCOUNTED_GAS {counted} of {burned} wei of {row['tx_hash']}")
    return found
