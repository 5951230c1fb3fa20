"""The simulated endpoints: old state that is gone, logs that come late, reads at a number."""

import asyncio

import attrs
import pytest

from gateway import ChainUnavailable
from gateway.domain.eip3009 import AUTHORIZATION_STATE, word
from tests.proof.simulation.chain import SimulatedChain
from tests.proof.simulation.late_payers import LatePayer
from tests.proof.simulation.pace import Pace
from tests.proof.simulation.people import Town
from tests.proof.simulation.rpc import FaultyRpc, Vendor
from tests.proof.simulation.world import Odds, World

_AGE_S = 100.0
_GOOD = Vendor(kept_states=None, log_lag_s=0.0)


class _Life:
    """A process on a fast network that never dies."""

    async def pause(self) -> None:
        await asyncio.sleep(0)

    def check(self) -> None: ...


@attrs.define
class _Place:
    """A chain on which a nonce was spent 100 s ago, in a world without faults."""

    rpc: FaultyRpc
    chain: SimulatedChain
    sender: str
    nonce: str

    def run(self, question):
        return self.chain.world.loop.run(question)

    async def spent(self, at) -> int:
        return await self.rpc.call_uint(
            AUTHORIZATION_STATE + word(self.sender) + word(self.nonce), at=at
        )

    async def logs(self) -> list:
        head = await self.rpc.head()
        return await self.rpc.authorization_logs(
            self.sender, self.nonce, from_block=0, to_block=head.number, known=head
        )


def _place(monkeypatch, vendor: Vendor) -> _Place:
    monkeypatch.setattr(Pace, "draw", lambda seed: Pace.of(200))
    monkeypatch.setattr(Vendor, "draw", lambda seed, place: vendor)
    world = World(1)
    world.odds = Odds(**dict.fromkeys(attrs.fields_dict(Odds), 0.0))
    chain = SimulatedChain(world)
    payer = LatePayer(Town(world, chain), "late", leaks=True, idempotency_key=None)
    payer.prepare(_AGE_S, is_cancelled=False)
    (signed,) = payer.old
    who = (signed.authorization.sender, signed.authorization.nonce)
    return _Place(FaultyRpc(chain, world, _Life()), chain, *who)


def test_the_state_is_read_at_any_block_by_its_number(monkeypatch):
    place = _place(monkeypatch, _GOOD)

    async def bisect():
        low, high = 0, (await place.rpc.head()).number
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if await place.spent(middle) else (middle, high)
        return high

    found = place.run(bisect())
    assert place.chain.head_number - found == _AGE_S * 5
    (transaction,) = place.chain.at(found).transactions
    assert place.run(place.logs()) == [(transaction.hash, True)]


def test_an_endpoint_without_history_answers_for_its_newest_blocks_only(monkeypatch):
    place = _place(monkeypatch, attrs.evolve(_GOOD, kept_states=128))
    newest = place.chain.head_number
    old = place.run(place.rpc.block_at(newest - 128))
    assert place.run(place.spent(newest - 127)) == 1
    for at in (newest - 128, old):
        with pytest.raises(ChainUnavailable):
            place.run(place.spent(at))


@pytest.mark.parametrize(("lag_s", "shown"), [(99.0, 1), (101.0, 0), (180.0, 0)])
def test_logs_of_new_blocks_are_missing_where_the_index_lags(monkeypatch, lag_s, shown):
    place = _place(monkeypatch, attrs.evolve(_GOOD, log_lag_s=lag_s))
    assert len(place.run(place.logs())) == shown


def test_a_number_above_the_newest_block_is_no_answer(monkeypatch):
    place = _place(monkeypatch, _GOOD)
    with pytest.raises(ChainUnavailable):
        place.run(place.spent(place.chain.head_number + 1))
