"""An endpoint that runs production's shared simulations on the simulated token."""

from collections.abc import Awaitable, Callable
from typing import Any

import attrs

from gateway.chain.retries import Cooldown
from gateway.chain.shared_simulations import TRANSFER_BYTES, SharedSimulations
from gateway.domain.eip3009 import BASE
from tests.proof.simulation.token import TRANSFER_VRS

RunShared = Callable[[list[bytes]], Awaitable[bytes]]


@attrs.define
class _Endpoint:
    """The first endpoint; `run` stands for the program, and gets the calldata of each transfer."""

    run: RunShared
    place: int = 1
    cooldown: Cooldown = attrs.field(factory=Cooldown)

    async def request(
        self, method: str, call: dict[str, str], where: str, *, is_optional: bool
    ) -> str:
        data = bytes.fromhex(call["data"][2:])
        calls = data[data.index(TRANSFER_VRS) :]
        starts = range(0, len(calls), TRANSFER_BYTES)
        flags = await self.run([calls[at : at + TRANSFER_BYTES] for at in starts])
        return "0x" + flags.hex()


def share_simulations(run: RunShared) -> SharedSimulations:
    """Return production's shared simulations, over this endpoint."""
    endpoint: Any = _Endpoint(run)

    async def ask_in_order(ask: Callable[[Any], Awaitable[Any]]) -> Any:
        return await ask(endpoint)

    return SharedSimulations(BASE, ask_in_order)
