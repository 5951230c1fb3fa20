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
        self.newest = self.safe = HEAD

    async def head(self):
        return await self.block_at(self.newest)

    async def safe_head(self):
        return await self.block_at(self.safe)

    async def transfer_logs(self, recipient, *, sender, from_block, to_block):
        self.read.append((from_block, to_block))
        if recipient is None:
            return []
        return await super().transfer_logs(
            KEY, sender=sender, from_block=from_block, to_block=to_block
        )


class Store:
    """A store made a week ago or before, without records, which was never restored."""

    def __init__(self) -> None:
        self.progress, self.rows = None, {}

    async def known_meta(self, key):
        return None

    async def write(self, function, progress, changed, gone):
        self.progress = progress
        self.rows |= {(one.transfer.tx_hash, one.transfer.log_index): one for one in changed}
        for place in gone:
            del self.rows[place]

    async def sum(self, function, *arguments):
        if function is movements.open_movements.read:
            return self.progress, list(self.rows.values())
        if function is movements.seen_transfers.booked_at:
            return 0.0
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


def _make(chain: Chain, store: Store | None = None) -> MovementSearch:
    roles = {WALLET: "wallet", KEY: "settlement"}
    return MovementSearch(chain, store or Store(), lambda: roles, lambda: NOW)


async def test_the_newest_blocks_are_read_first_and_a_week_without_a_gap():
    chain = Watched(dust_every=WEEK_BLOCKS)
    search = _make(chain)
    await _search(search)
    assert chain.read[0] == (HEAD - 999, HEAD)
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


async def test_a_restart_goes_on_where_the_last_process_stopped():
    chain, store = Watched(dust_every=WEEK_BLOCKS // 3), Store()
    search = _make(chain, store)
    while not search.is_complete:
        await _search(search)
    chain.read.clear()
    again = _make(chain, store)
    await _search(again)
    assert again.is_complete
    assert [one.movement for one in again.known] == [one.movement for one in search.known] != []
    # The newest block is safe here, and was read.
    assert chain.read == []


async def test_an_endpoint_for_a_hundred_blocks_is_slow_and_not_blind():
    chain = Watched(dust_every=500)
    chain.most_blocks = 100
    search = _make(chain)
    await _search(search)
    assert [one.movement.transfer.block_number for one in search.known][:2] == [HEAD, HEAD - 500]
    begun = len(chain.read)
    await _search(search)
    # The newest blocks, a larger piece that is refused, and ten pieces of two sides.
    assert len(chain.read) - begun <= 26
    assert search.read_at == NOW
    assert not search.is_complete


async def test_an_error_is_not_followed_by_a_search_per_page():
    chain = Watched(dust_every=WEEK_BLOCKS)
    chain.most_blocks = 50
    search = _make(chain)
    await search.refresh(60.0)
    begun = len(chain.read)
    for _ in range(5):
        await search.refresh(60.0)
    assert (search.problem, search.read_at) == ("at most 4,000 blocks", None)
    assert len(chain.read) == begun <= 6


async def test_nodes_that_share_a_database_lose_nothing():
    chain, store = Watched(dust_every=400), Store()
    chain.safe = HEAD - 500
    nodes = [_make(chain, store), _make(chain, store)]
    for node in nodes:
        await _search(node)
    chain.safe = HEAD
    for node in nodes:
        await _search(node)
    newest = [one.movement.transfer.block_number for one in nodes[1].known][:3]
    assert newest == [HEAD, HEAD - 400, HEAD - 800]
    assert {one.transfer.block_number for one in store.rows.values()} >= set(newest)


async def test_an_endpoint_that_lags_counts_as_not_read():
    chain, store = Watched(dust_every=WEEK_BLOCKS), Store()
    await _search(_make(chain, store))
    chain.newest = chain.safe = HEAD - 5_000
    late = _make(chain, store)
    await late.refresh(60.0)
    assert late.problem == "The RPC endpoint is behind the blocks that were read before."
    assert late.read_at is None
