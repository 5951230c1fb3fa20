"""Payers who buy as plain accounts, and later get code that refuses transactions at a price.

Such code comes by EIP-7702. It accepts simulations without fees, so only the code itself, or a
simulation as our transaction, shows that the settlement would revert.
"""

import asyncio
import random

import attrs

from tests.proof.simulation.ground import Ground
from tests.proof.simulation.paying import key_of
from tests.proof.simulation.people import RICH_UNITS, Town
from tests.proof.simulation.token import read_signed

_SHARE = 0.1  # of the histories
_SETTLED_S = 15.0  # after the first purchase: no other block can replace its own any more
_GREED_S = 110.0  # longer than the trouble: also when all work again


def draw(town: Town, seed: int) -> list["Delegator"]:
    """Return the delegators, drawn separately; most histories have none."""
    dice = random.Random(f"delegators {seed}")
    return [Delegator(town, "delegator")] if dice.random() < _SHARE else []


@attrs.define
class Delegator:
    """Buys, gets code, and buys again and again."""

    town: Town
    name: str
    accepted: list[tuple[str, str]] = attrs.field(factory=list)  # (task, prompt) of each 200
    nonces: set[str] = attrs.field(factory=set)  # signed while it had code

    @property
    def address(self) -> str:
        return key_of(self.name)[1]

    async def live(self) -> None:
        town, dice = self.town, self.town.world.dice
        town.chain.fund(self.address, RICH_UNITS)
        await asyncio.sleep(dice.uniform(3.5, 10.0))
        await self._buy()
        await asyncio.sleep(_SETTLED_S)
        town.chain.token.delegated.add(self.address)
        until = town.world.loop.time() + _GREED_S
        while town.world.loop.time() < until:
            self.nonces.add(await self._buy())
            await asyncio.sleep(dice.choice((2.0, 8.0)))

    async def _buy(self) -> str:
        signed = self.town.sign(self.name, seconds=self.town.world.dice.uniform(23.0, 35.0))
        prompt = f"{self.name} {self.town.world.now():.0f}"
        await self.town.buy_with(self.name, signed, prompt, self.accepted)
        return signed.authorization.nonce


def check(ground: Ground, delegators: list[Delegator]) -> list[str]:
    """No gas is spent for an account that had such code before it asked."""
    nonces = {nonce for one in delegators for nonce in one.nonces}
    if not nonces:
        return []
    return [
        f"GAS_BURNED {transaction.hash} for an account with code"
        for block in ground.chain.kept
        for transaction in block.transactions
        if ground.chain.sent.get(transaction.hash) == "gateway"
        and not block.state.mined[transaction.hash].succeeded
        and any(read_signed(call.data).nonce in nonces for call in transaction.calls)
    ]
