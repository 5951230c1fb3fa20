"""The search for movements without a record: the number of its calls, and its order."""

import asyncio
import itertools

import pytest

from gateway_operator import movements
from gateway_operator.movements import MovementSearch
from gateway_operator.sql.movements import Movement
from tests.plugins.gateway_operator.unit.test_unused_search import (
    HEAD,
    NOW,
    WALLET,
    WEEK_BLOCKS,
    Chain,
)

KEY = "0x" + "c" * 40


class Watched(Chain):
    """A chain on which anybody sends dust to the key; it records the ranges that are read."""

    def __init__(self, dust_every: int) -> None:
        super().__init__(dust_every)
        self.read: list[tuple[int, int]] = []

    async def transfer_logs(self, recipient, *, sender, from_block, to_block):
        self.read.append((from_block, to_block))
        if recipient is None:
            return []
        return await super().transfer_logs(
            KEY, sender=sender, from_block=from_block, to_block=to_block
        )


class Store:
    """A store made a week ago or before, without records, which was never restored."""

    async def known_meta(self, key):
        return None

    async def sum(self, function, *arguments):
        if function is movements.ledger.refund_senders:
            return set()
        if function is movements.last_restore:
            return None
        transfers, roles, _ = arguments
        return [
            Movement(transfer=one, address=KEY, role=roles[KEY], kind="stray") for one in transfers
        ]


@pytest.fixture(autouse=True)
def _no_rests(monkeypatch):
    sleep = asyncio.sleep
    monkeypatch.setattr(movements.asyncio, "sleep", lambda _: sleep(0))


async def _search(search: MovementSearch) -> None:
    search.searched_at = None
    await search.refresh(60.0)
    assert search.problem is None


def _make(chain: Chain) -> MovementSearch:
    roles = {WALLET: "wallet", KEY: "settlement"}
    return MovementSearch(chain, Store(), lambda: roles, lambda: NOW)


async def test_the_newest_blocks_are_read_first_and_a_week_without_a_gap():
    chain = Watched(dust_every=WEEK_BLOCKS)
    search = _make(chain)
    await _search(search)
    assert chain.read[0] == (HEAD - 9_999, HEAD)
    assert not search.is_complete
    rounds = 1
    while not search.is_complete:
        queries = len(chain.read)
        await _search(search)
        rounds += 1
        assert len(chain.read) - queries <= 22
    assert rounds <= 32
    blocks = sorted(set(chain.read))
    assert blocks[0][0] <= HEAD - WEEK_BLOCKS + 1
    ends = itertools.pairwise(blocks)
    assert all(after[0] <= before[1] + 1 for before, after in ends)


async def test_dust_costs_a_bounded_number_of_reads_and_of_memory():
    chain = Watched(dust_every=10)
    search = _make(chain)
    await _search(search)
    begun = chain.block_queries
    await _search(search)
    # Of the two heads and twenty times.
    assert chain.block_queries - begun <= 22
    assert len(search.known) == 200
