"""Owners of wallets with code that approve our simulation, and revert in the block to burn our gas.

They watch the mempool: once our transaction is pending, their change gets in front of it.
"""

import asyncio

import attrs

from tests.proof.simulation.ground import Ground
from tests.proof.simulation.paying import buy_x402, key_of
from tests.proof.simulation.people import RICH_UNITS, Town
from tests.proof.simulation.token import flip_call, read_signed

_POLL_S = 0.25
_GREED_S = 110.0  # longer than the trouble: also when all work again
_MAX_TRIES = 6


@attrs.define
class Flipper:
    """Buys repeatedly, several pictures at once, and reverts when a settlement may be mined."""

    town: Town
    name: str
    accepted: list[tuple[str, str]] = attrs.field(factory=list)  # (task, prompt) of each 200

    @property
    def address(self) -> str:
        return key_of(self.name)[1]

    async def live(self) -> None:
        town, dice = self.town, self.town.world.dice
        town.chain.token.wallets.add(self.address)
        if dice.random() < 0.3:
            town.chain.token.suspicious.add(self.address)
        town.chain.fund(self.address, RICH_UNITS)
        await asyncio.sleep(dice.uniform(3.5, 10.0))
        until = town.world.loop.time() + _GREED_S
        while town.world.loop.time() < until:
            await self._buy(f"{self.name} {town.world.loop.time():.0f}")
            self._flip(refuses=False)
            # Sometimes until the open payments have expired.
            await asyncio.sleep(dice.choice((2.0, 35.0)))

    async def _buy(self, prompt: str) -> None:
        dice = self.town.world.dice
        asks = [
            asyncio.ensure_future(self._ask(f"{prompt} {number}"))
            for number in range(dice.randint(1, 3))
        ]
        while not all(ask.done() for ask in asks):
            await asyncio.sleep(_POLL_S)
            if self._is_awaited():
                self._flip(refuses=True)
                break
        await asyncio.gather(*asks)

    def _is_awaited(self) -> bool:
        """Whether a transaction of the gateway with this wallet's authorization is unmined."""
        chain = self.town.chain
        return any(
            chain.sent.get(waiting.hash) == "gateway"
            and read_signed(waiting.calls[0].data).sender == self.address
            for waiting in chain.pending
        )

    async def _ask(self, prompt: str) -> None:
        """Repeat a request until there is a definite response."""
        world = self.town.world
        signed = self.town.sign(self.name, seconds=world.dice.uniform(23.0, 35.0))
        for _ in range(_MAX_TRIES):
            answer = await self.town.ask(buy_x402(signed.header, prompt))
            world.note(f"{self.name} gets {answer.status} {answer.code}")
            if answer.task_id is not None:
                self.accepted.append((answer.task_id, prompt))
            if answer.status in (200, 402):
                return
            await asyncio.sleep(2.0)

    def _flip(self, *, refuses: bool) -> None:
        """Change the wallet's behaviour, in front of all pending transactions."""
        call = flip_call(self.address, refuses=refuses)
        self.town.publish(self.name, call, is_sticky=True)
        pending = self.town.chain.pending
        pending.insert(0, pending.pop())


def check(ground: Ground, flippers: list[Flipper]) -> list[str]:
    """A wallet with code burns the gas of one transaction a day, not counting expired payments."""
    addresses = {flipper.address for flipper in flippers}
    burned: dict[str, set[str]] = {}
    for block in ground.chain.kept:
        for transaction in block.transactions:
            if ground.chain.sent.get(transaction.hash) != "gateway":
                continue
            signed = read_signed(transaction.calls[0].data)
            receipt = block.state.mined[transaction.hash]
            is_late = block.timestamp >= signed.valid_before
            if not receipt.succeeded and not is_late and signed.sender in addresses:
                burned.setdefault(signed.sender, set()).add(transaction.hash)
    return [
        f"GAS_BURNED {len(hashes)} transactions for {wallet}"
        for wallet, hashes in burned.items()
        if len(hashes) > 1
    ]
