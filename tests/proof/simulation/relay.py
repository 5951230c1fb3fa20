"""A facilitator's server: it settles alone or in batches, reports little, and sometimes lies.

Its transactions succeed even if an authorization in them failed, as with Multicall3. The plugin
that uses it is production's; only its HTTP client is replaced.
"""

import asyncio
import contextvars
from collections.abc import Mapping
from typing import Any

import attrs

from gateway import Authorization, CallReverted
from gateway.domain.eip3009 import transfer_calldata
from gateway_facilitator_settler.client import Answer, FacilitatorUnavailable
from tests.proof.simulation.chain import SimulatedChain, Transaction
from tests.proof.simulation.token import Call, read_signed
from tests.proof.simulation.world import World

RELAY = "0x" + "f1" * 20
NETWORK = "eip155:8453"
_BATCH_S = 1.5
_PATIENCE_S = 20  # it waits so long for a block before it answers
_SILENCE_S = 45.0  # the client's own time-out
_MOODS = {  # what becomes of a request to settle, and how often
    "in order": 50,
    "answers before the block": 20,
    "silent after sending": 6,
    "error after sending": 6,
    "error before sending": 6,
    "success:false and nothing sent": 4,
    "success:false though sent": 4,
    "a hash that never lands": 4,
    "the hash of another": 4,
}


class Relay:
    """An external server, which survives the gateway."""

    def __init__(self, world: World, chain: SimulatedChain) -> None:
        self._world = world
        self._chain = chain
        self._batch: list[Call] = []
        self._next: Transaction | None = None

    def verify(self, data: bytes) -> dict[str, Any]:
        """Return the response of /verify."""
        head = self._chain.head
        try:
            self._chain.token.check(data, read_signed(data), head.state, head.timestamp)
        except CallReverted:
            return {"isValid": False, "invalidReason": "invalid_exact_evm_nonce_already_used"}
        return {"isValid": True}

    def mood(self) -> str:
        if self._world.is_healed:
            return "in order"
        mood = self._world.dice.choices(tuple(_MOODS), tuple(_MOODS.values()))[0]
        if mood != "in order":
            self._world.faults[f"facilitator: {mood}"] += 1
            self._world.note(f"facilitator: {mood}")
        return mood

    def settle(self, data: bytes) -> str:
        """Send an authorization, alone or with others; return the transaction's hash."""
        call = Call(RELAY, data)
        if self._world.dice.random() < 0.5:
            transaction = self._chain.new_transaction(RELAY, call, is_atomic=False)
            self._chain.add(transaction, "relay")
            return transaction.hash
        if self._next is None:
            self._next = self._chain.new_transaction(RELAY, is_atomic=False)
            own = contextvars.Context()  # the relay's: it outlives whoever asked
            self._world.loop.call_later(_BATCH_S, self._flush, context=own)
        self._batch.append(call)
        return self._next.hash

    def _flush(self) -> None:
        if self._next is None:
            return
        batch = attrs.evolve(self._next, calls=tuple(self._batch))
        self._batch, self._next = [], None
        self._chain.add(batch, "relay")

    def result(self, tx_hash: str, data: bytes) -> bool | None:
        """Return whether a transaction moved this authorization's money; None while unmined."""
        if tx_hash not in self._chain.state.mined:
            return None
        signed = read_signed(data)
        return self._chain.state.used.get((signed.sender, signed.nonce)) == (tx_hash, True)

    def others_hash(self) -> str:
        """Return the hash of any mined transaction, or of none."""
        mined = list(self._chain.state.mined)
        return self._world.dice.choice(mined) if mined else self.no_hash()

    def no_hash(self) -> str:
        return "0x" + self._world.dice.randbytes(32).hex()


class RelayClient:
    """Replaces the facilitator plugin's HTTP client."""

    def __init__(self, life: Any) -> None:
        self._life = life
        self._relay: Relay = life.relay

    async def get(self, path: str) -> Answer:
        await self._reach()
        kind = {"x402Version": 2, "scheme": "exact", "network": NETWORK}
        return Answer(status=200, body={"kinds": [kind]})

    async def post(self, path: str, body: Mapping[str, Any]) -> Answer:
        await self._reach()
        data = _call_data(body)
        if path == "/verify":
            return Answer(status=200, body=self._relay.verify(data))
        return await self._settle(data)

    async def _reach(self) -> None:
        await self._life.pause()
        if self._life.world.strikes(0.05, "facilitator: unreachable"):
            raise FacilitatorUnavailable("unreachable")

    async def _settle(self, data: bytes) -> Answer:
        relay, mood = self._relay, self._relay.mood()
        if mood == "error before sending":
            raise FacilitatorUnavailable("status 500")
        if mood == "success:false and nothing sent":
            return _settled("", success=False)
        if mood == "a hash that never lands":
            return _settled(relay.no_hash(), success=True)
        if mood == "the hash of another":
            return _settled(relay.others_hash(), success=True)
        tx_hash = relay.settle(data)
        await self._life.crash_point("relayed, its answer not seen")
        await self._life.pause()
        if mood == "error after sending":
            raise FacilitatorUnavailable("status 502")
        if mood == "silent after sending":
            await asyncio.sleep(_SILENCE_S)
            raise FacilitatorUnavailable("time-out")
        if mood in ("answers before the block", "success:false though sent"):
            return _settled(tx_hash, success=mood == "answers before the block")
        return _settled(tx_hash, success=await self._mined(tx_hash, data))

    async def _mined(self, tx_hash: str, data: bytes) -> bool:
        for _ in range(_PATIENCE_S):
            result = self._relay.result(tx_hash, data)
            if result is not None:
                return result
            await asyncio.sleep(1)
            self._life.check()
        raise FacilitatorUnavailable("status 504")


def _settled(tx_hash: str, *, success: bool) -> Answer:
    return Answer(status=200, body={"success": success, "transaction": tx_hash, "network": NETWORK})


def _call_data(body: Mapping[str, Any]) -> bytes:
    """Return the call that the authorization in a request allows."""
    payload = body["paymentPayload"]["payload"]
    signed = payload["authorization"]
    return transfer_calldata(
        Authorization(
            sender=signed["from"].lower(),
            recipient=signed["to"].lower(),
            value_units=int(signed["value"]),
            valid_after=int(signed["validAfter"]),
            valid_before=int(signed["validBefore"]),
            nonce=signed["nonce"],
            signature=bytes.fromhex(payload["signature"][2:]),
        )
    )
