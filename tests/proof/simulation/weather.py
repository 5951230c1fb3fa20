"""External faults: silence, stuck endpoints, expensive gas, a key used elsewhere."""

import asyncio

import attrs

from tests.proof.simulation.people import Town
from tests.proof.simulation.third_parties import THIRD_PARTY
from tests.proof.simulation.token import transfer_call

_WEIGHTS = (2, 2, 4, 2, 1, 2)  # of the kinds, in their order


@attrs.define
class Weather:
    """Strikes up to three times per history."""

    town: Town
    signer: str

    async def live(self) -> None:
        world = self.town.world
        kinds = {
            "silence": self._silence,
            "an endpoint stuck": self._stuck,
            "silence and an endpoint stuck": self._storm,
            "dear gas": self._dear_gas,
            "no gas money": self._no_gas_money,
            "a nonce used elsewhere": self._spend_nonce,
        }
        for _ in range(world.dice.randint(0, 3)):
            await asyncio.sleep(world.dice.uniform(1.0, 20.0))
            if world.is_healed:
                return
            kind = world.dice.choices(tuple(kinds), _WEIGHTS)[0]
            world.faults[kind] += 1
            world.note(f"weather: {kind}")
            await kinds[kind](world.dice.choice((3.0, 12.0, 35.0)))

    async def _silence(self, seconds: float) -> None:
        """Silence all endpoints."""
        self.town.world.silent_until = self.town.world.loop.time() + seconds

    async def _stuck(self, seconds: float) -> None:
        """Freeze one endpoint at this block."""
        chain = self.town.chain
        chain.stuck[self.town.world.dice.randrange(2)] = chain.head_number
        await asyncio.sleep(seconds)
        chain.stuck.clear()

    async def _storm(self, seconds: float) -> None:
        """Silence all until many authorizations have expired, then freeze one."""
        await self._silence(35.0)
        await self._stuck(35.0 + seconds)

    async def _dear_gas(self, seconds: float) -> None:
        """Raise the gas price above the bid."""
        chain = self.town.chain
        chain.base_fee = self.town.world.dice.choice((10**8, 10**9))
        await asyncio.sleep(seconds)
        chain.calm_gas()

    async def _no_gas_money(self, seconds: float) -> None:
        """Show the gateway's keys as out of ETH."""
        self.town.chain.gas_money = 0
        await asyncio.sleep(seconds)
        self.town.chain.calm_gas()

    async def _spend_nonce(self, _seconds: float) -> None:
        """Let the operator use a key of the gateway for something else."""
        chain = self.town.chain
        nonce = chain.state.counts.get(self.signer, 0)
        if any(tx.sender == self.signer and tx.nonce == nonce for tx in chain.pending):
            return
        call = transfer_call(self.signer, THIRD_PARTY, 0)
        foreign = chain.new_transaction(self.signer, call, nonce=nonce)
        chain.add(foreign, "operator")
