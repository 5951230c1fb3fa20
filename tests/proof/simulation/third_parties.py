"""The other participants:

observers, front-runners, payers who cancel or divert, and the weather.
"""

import asyncio

import attrs

from gateway.domain import Receipt
from gateway.domain.eip3009 import AUTHORIZATION_USED_TOPIC, BASE, transfers_to
from tests.proof.simulation import market
from tests.proof.simulation.ground import Ask
from tests.proof.simulation.paying import SignedHeader, buy_direct, buy_x402, key_of
from tests.proof.simulation.people import RICH_UNITS, Town
from tests.proof.simulation.token import Call, cancel_call, transfer_call

THIRD_PARTY = "0x" + "33" * 20


@attrs.define
class Observer:
    """Reads the chain, and asks for pictures with other people's hashes and headers."""

    town: Town
    accepted: list[tuple[str, str]] = attrs.field(factory=list)  # (task, prompt) of each 200

    async def live(self) -> None:
        dice = self.town.world.dice
        for turn in range(dice.randint(2, 6)):
            await asyncio.sleep(dice.uniform(1.0, 9.0))
            public = self._public()
            headers = self._headers(public)
            if dice.random() < 0.3 and headers:
                await self._replay(dice.choice(headers).header, f"observer {turn}")
            elif public:
                await self._race(dice.choice(public).tx_hash, turn)

    async def _replay(self, header: str, prompt: str) -> None:
        await self._try(prompt, buy_x402(header, prompt))

    async def _race(self, tx_hash: str, turn: int) -> None:
        """Submit a hash, sometimes several times at once."""
        count = self.town.world.dice.choice((1, 1, 3))
        prompts = [f"observer {turn} {n}" for n in range(count)]
        tries = [self._try(prompt, buy_direct(tx_hash, prompt, None)) for prompt in prompts]
        await asyncio.gather(*tries)

    async def _try(self, prompt: str, ask: Ask) -> None:
        answer = await self.town.ask(ask)
        if answer.status == 200 and answer.task_id is not None:
            self.accepted.append((answer.task_id, prompt))
            self.town.world.note(f"observer got {answer.task_id}")

    def _public(self) -> list[Receipt]:
        """Return the mined transactions that moved USDC to the wallet."""
        wallet = market.WALLET.lower()
        mined = self.town.chain.state.mined.values()
        return [receipt for receipt in mined if transfers_to(wallet, receipt, BASE)]

    def _headers(self, public: list[Receipt]) -> list[SignedHeader]:
        """Return the public authorizations: in mined calls, and leaked ones."""
        used = {
            (log.topics[1][-40:], log.topics[2])
            for receipt in public
            for log in receipt.logs
            if log.topics[0] == AUTHORIZATION_USED_TOPIC
        }
        mined = [
            made
            for made in self.town.signed
            if (made.authorization.sender[2:], made.authorization.nonce) in used
        ]
        return mined + self.town.leaked


@attrs.define
class ThirdParty:
    """Sends others' authorizations to the chain before the gateway does, also in batches."""

    town: Town

    async def live(self) -> None:
        dice = self.town.world.dice
        for _ in range(dice.randint(1, 4)):
            await asyncio.sleep(dice.uniform(0.5, 8.0))
            if not self.town.leaked:
                continue
            count = dice.randint(1, 2)
            calls = [Call(THIRD_PARTY, dice.choice(self.town.leaked).data) for _ in range(count)]
            self.town.publish("third party", *calls, is_atomic=count == 1)


@attrs.define
class Cheat:
    """Signs, sends the header, and prevents the payment."""

    town: Town
    name: str
    headers: list[SignedHeader] = attrs.field(factory=list)
    accepted: list[tuple[str, str]] = attrs.field(factory=list)  # (task, prompt) of each 200

    async def live(self) -> None:
        dice, (_, address) = self.town.world.dice, key_of(self.name)
        self.town.chain.fund(address, dice.choice((market.PRICE_UNITS, RICH_UNITS)))
        await asyncio.sleep(dice.uniform(3.5, 14.0))
        signed = self.town.sign(self.name, seconds=dice.uniform(21.0, 45.0))
        self.headers.append(signed)
        before = dice.choice((True, False))
        if before:
            self._betray(signed)
            await asyncio.sleep(dice.uniform(0.0, 4.0))
        asks = [
            asyncio.ensure_future(self._ask(signed, turn)) for turn in range(dice.randint(1, 3))
        ]
        if not before:
            await asyncio.sleep(dice.uniform(0.0, 4.0))
            self._betray(signed)
        for ask in asks:
            await ask

    async def _ask(self, signed: SignedHeader, turn: int) -> None:
        """Ask with the same authorization for the same or another picture at the same time."""
        world = self.town.world
        await asyncio.sleep(world.dice.uniform(0.0, 1.0))
        prompt = f"cheat {turn if world.dice.random() < 0.5 else 0}"
        answer = await self.town.ask(buy_x402(signed.header, prompt))
        world.note(f"{self.name} gets {answer.status} {answer.code}")
        if answer.task_id is not None:
            self.accepted.append((answer.task_id, prompt))

    def _betray(self, signed: SignedHeader) -> None:
        town, address = self.town, signed.authorization.sender
        kind = town.world.dice.choice(("cancel", "divert", "empty", "pay less", "nothing"))
        town.world.note(f"{self.name} betrays: {kind}")
        if kind == "cancel":
            town.publish(self.name, cancel_call(signed.authorization))
        elif kind == "empty":
            rest = town.chain.state.balances[address]
            town.publish(self.name, transfer_call(address, THIRD_PARTY, rest))
        elif kind in ("divert", "pay less"):
            to = THIRD_PARTY if kind == "divert" else market.WALLET
            other = town.sign(
                self.name,
                seconds=40.0,
                to=to,
                units=market.PRICE_UNITS - (kind == "pay less"),
                nonce=signed.authorization.nonce,
            )
            town.publish(self.name, Call(address, other.data))
