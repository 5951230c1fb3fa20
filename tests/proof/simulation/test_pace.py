"""The simulated chain's blocks: their numbers, timestamps and hashes, at every pace."""

import itertools
from collections import Counter

import pytest

from tests.proof.simulation.chain import SimulatedChain
from tests.proof.simulation.pace import Pace
from tests.proof.simulation.token import transfer_call
from tests.proof.simulation.world import EPOCH, World

_NOW_MS = EPOCH * 1000
_PACES = [
    Pace.of(200),
    Pace.of(2_000),
    Pace.of(12_000),
    Pace.of(2_000, 200, change_ms=_NOW_MS + 7_100),
    Pace.of(200, 2_000, change_ms=_NOW_MS - 500),
]


@pytest.mark.parametrize("pace", _PACES)
def test_a_block_is_the_newest_from_its_time_until_the_next(pace):
    for number in range(pace.newest(_NOW_MS - 20_000), pace.newest(_NOW_MS + 20_000)):
        assert pace.newest(pace.time_of(number)) == number
        assert pace.newest(pace.time_of(number + 1) - 1) == number
        assert pace.first_from(pace.time_of(number)) == number
        assert pace.first_from(pace.time_of(number) + 1) == number + 1


def test_five_blocks_share_a_second_as_on_base():
    pace = Pace.of(200)
    first = pace.newest(_NOW_MS)
    seconds = Counter(pace.time_of(number) // 1000 for number in range(first, first + 50))
    assert set(seconds.values()) == {5}


def test_the_pace_changes_after_a_whole_block_of_the_old_one():
    pace = Pace.of(2_000, 200, change_ms=_NOW_MS + 7_100)
    times = [
        pace.time_of(number) for number in range(pace.newest(_NOW_MS), pace.newest(_NOW_MS) + 7)
    ]
    steps = [after - before for before, after in itertools.pairwise(times)]
    assert steps == [2_000, 2_000, 2_000, 2_000, 200, 200]


def test_histories_have_every_pace():
    spans = {
        tuple(pace.time_of(at + 1) - pace.time_of(at) for at in (0, pace.newest(_NOW_MS + 60_000)))
        for pace in map(Pace.draw, range(200))
    }
    assert {(200, 200), (2_000, 2_000), (12_000, 12_000), (2_000, 200), (200, 2_000)} <= spans


@pytest.mark.parametrize("seed", range(8))
def test_a_block_that_was_shown_stays_or_is_an_orphan(seed):
    world = World(seed)
    world.odds.reorganised = 0.3
    chain, seen = SimulatedChain(world), {}
    chain.fund("0x" + "11" * 20, 1_000)

    async def look():
        for turn in range(60):
            chain.add(chain.new_transaction("0x" + "11" * 20, _payment()), "somebody")
            for _ in range(1 + turn % 3):
                await _sleep(world, 0.05 + 0.2 * (turn % 5))
                for block in (chain.head, chain.at(chain.head_number - turn)):
                    seen[block.hash] = block

    world.loop.run(look())
    assert len(seen) > 60
    assert any(block.transactions for block in seen.values())
    for block in seen.values():
        now = chain.at(block.number)
        assert now.hash == block.hash or chain.orphans[block.number].hash == block.hash
        assert now.timestamp == block.timestamp
        if now.hash == block.hash:
            assert now.state.mined == block.state.mined


def _payment():
    return transfer_call("0x" + "11" * 20, "0x" + "22" * 20, 1)


async def _sleep(world, seconds):
    moment = world.loop.create_future()
    world.loop.call_later(seconds, moment.set_result, None)
    await moment
