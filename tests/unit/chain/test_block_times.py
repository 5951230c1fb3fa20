"""Searches for a block by its time, on chains of any pace."""

import pytest

from gateway.chain.block_times import first_block_since, last_block_by
from gateway.domain import Block
from tests.unit.payments.paced_chain import DENIM, PACES, PacedChain
from tests.unit.payments.test_nonce_events import signed_at

AGES_S = (0.0, 0.3, 1.0, 7.5, 59.9, 600.0, 1_799.9, 1_800.0, 1_800.1, 86_400.0, 2.9 * 86_400)


def paced(name: str, *, has_milliseconds: bool, now: float = DENIM + 1_800.0) -> PacedChain:
    return PacedChain(
        now=now, paces=PACES[name], has_milliseconds=has_milliseconds, signed=signed_at(now)
    )


@pytest.mark.parametrize("name", PACES)
@pytest.mark.parametrize("age_s", AGES_S)
async def test_with_milliseconds_both_ends_are_exact(name, age_s):
    chain = paced(name, has_milliseconds=True)
    at = chain.now - age_s
    last = await last_block_by(chain, at)
    assert chain.time_of(last) <= at
    assert last + 1 == chain.newest + 1 or chain.time_of(last + 1) > at
    first = await first_block_since(chain, at)
    assert chain.time_of(first - 1) < at
    assert first == chain.newest + 1 or chain.time_of(first) >= at


@pytest.mark.parametrize("name", PACES)
@pytest.mark.parametrize("age_s", AGES_S)
async def test_with_whole_seconds_no_block_that_may_count_is_left_out(name, age_s):
    chain = paced(name, has_milliseconds=False)
    at = chain.now - age_s
    last = await last_block_by(chain, at)
    # The last one of its second, which may be later than `at` by less than a second.
    assert int(chain.time_of(last)) <= at
    assert last + 1 == chain.newest + 1 or int(chain.time_of(last + 1)) > at
    first = await first_block_since(chain, at)
    assert int(chain.time_of(first - 1)) < int(at)
    assert first == chain.newest + 1 or int(chain.time_of(first)) >= int(at)


@pytest.mark.parametrize("has_milliseconds", [True, False])
async def test_five_blocks_of_a_second(has_milliseconds):
    chain = paced("0.2 s", has_milliseconds=has_milliseconds)
    second = chain.now - 1_000.0
    begin = chain.number_at(second)
    assert [int(chain.time_of(begin + one)) for one in range(-1, 6)] == [
        int(second) - 1,
        *[int(second)] * 5,
        int(second) + 1,
    ]
    found = await last_block_by(chain, second + 0.4), await first_block_since(chain, second + 0.4)
    assert found == ((begin + 2, begin + 2) if has_milliseconds else (begin + 4, begin))


@pytest.mark.parametrize(("name", "most"), [(name, 36) for name in PACES])
@pytest.mark.parametrize("age_s", [60.0, 3_600.0, 86_400.0, 2.9 * 86_400])
async def test_a_search_takes_few_calls(name, most, age_s):
    chain = paced(name, has_milliseconds=False)
    await last_block_by(chain, chain.now - age_s)
    assert chain.calls["block"] <= (most if "then" in name else 14)


class Genesis:
    """A chain with a single block."""

    async def head(self) -> Block:
        return Block(number=0, hash="0x00", timestamp=1_000)


async def test_a_chain_of_one_block():
    assert await last_block_by(Genesis(), 999.0) == 0
    assert await last_block_by(Genesis(), 1_000.0) == 0
    assert await first_block_since(Genesis(), 999.0) == 0
    assert await first_block_since(Genesis(), 1_000.5) == 0
    assert await first_block_since(Genesis(), 1_001.0) == 1


async def test_times_before_the_first_block():
    chain = paced("0.2 s", has_milliseconds=False)
    assert await last_block_by(chain, chain.time_of(0) - 10.0) == 0
    assert await first_block_since(chain, chain.time_of(0) - 10.0) == 0
