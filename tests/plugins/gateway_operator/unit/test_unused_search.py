"""The search for unused transfers of a week: the number of its calls, and its speed."""

import asyncio
import sqlite3

import pytest
import structlog

from gateway.chain.log_ranges import LogsTooNarrow
from gateway.domain import Block, MinedTransfer
from gateway.errors import ChainUnavailable
from gateway_operator import unused_transfers
from gateway_operator.unused_transfers import UnusedSearch, list_unused

WEEK_BLOCKS = 7 * 86_400 * 5
HEAD = 400_000_000
NOW = HEAD / 5
WALLET = "0x" + "a" * 40


class Chain:
    """A chain with five blocks a second, and dust in every `dust_every`-th of them."""

    def __init__(self, dust_every: int) -> None:
        self.dust_every = dust_every
        self.log_queries = self.block_queries = 0
        self.most_blocks = 10_000
        self.silent_after: int | None = None

    async def head(self) -> Block:
        return await self.block_at(HEAD)

    safe_head = head

    async def block_at(self, number: int) -> Block:
        self.block_queries += 1
        if self.silent_after is not None and self.block_queries > self.silent_after:
            raise ChainUnavailable("silent")
        return Block(number=number, hash="0x", timestamp=number // 5)

    async def transfer_logs(self, wallet, *, sender: None, from_block: int, to_block: int):
        self.log_queries += 1
        if to_block - from_block >= self.most_blocks:
            raise LogsTooNarrow("at most 4,000 blocks")
        return [
            MinedTransfer(
                tx_hash=f"0x{number:064x}",
                log_index=0,
                block_number=number,
                sender="0x" + "b" * 40,
                recipient=wallet,
                amount_units=number,
            )
            for number in range(from_block, to_block + 1)
            if number % self.dust_every == 0
        ]


class Store:
    """A store without payments."""

    async def sum(self, function, transfers):
        return list(transfers)


@pytest.fixture
def rests(monkeypatch) -> list[float]:
    """Return the list of pauses, which take no time here."""
    taken: list[float] = []
    sleep = asyncio.sleep

    async def rest(seconds: float) -> None:
        taken.append(seconds)
        await sleep(0)

    monkeypatch.setattr(unused_transfers.asyncio, "sleep", rest)
    return taken


def _search(chain: Chain) -> UnusedSearch:
    return UnusedSearch(chain, Store(), WALLET, lambda: NOW)


async def test_a_week_costs_so_many_questions_and_a_rest_after_each(rests):
    chain = Chain(dust_every=WEEK_BLOCKS // 3)
    await _search(chain).refresh(60.0)
    assert chain.log_queries <= 303
    # For finding the first block, and the times of the findings.
    assert chain.block_queries <= 30
    assert sum(rests) >= chain.log_queries * 0.5


async def test_a_narrow_endpoint_is_asked_for_smaller_pieces_without_a_gap(rests):
    chain = Chain(dust_every=WEEK_BLOCKS // 50)
    chain.most_blocks = 4_000
    search = _search(chain)
    await search.refresh(60.0)
    assert (search.problem, len(search.known)) == (None, 50)
    # Pieces of 2,500 blocks, and the two that were refused.
    assert chain.log_queries == -(-WEEK_BLOCKS // 2_500) + 2


async def test_an_endpoint_that_is_too_narrow_is_named(rests):
    chain = Chain(dust_every=WEEK_BLOCKS)
    chain.most_blocks = 500
    search = _search(chain)
    await search.refresh(60.0)
    assert search.problem == "at most 4,000 blocks"
    assert chain.log_queries == 5


async def test_dust_in_many_blocks_makes_no_more_than_a_fixed_number_of_questions(rests):
    chain = Chain(dust_every=30)
    search = _search(chain)
    await search.refresh(60.0)
    assert (search.problem, len(search.known)) == (None, 500)
    # The newest are the largest here.
    assert min(one.transfer.block_number for one in search.known) > HEAD - 30 * 501
    assert search.left_out == WEEK_BLOCKS // 30 - 500
    assert chain.block_queries <= 530
    assert sum(rests) >= 0.5 * (chain.log_queries + 500)


async def test_the_command_rests_between_two_questions(rests, monkeypatch):
    monkeypatch.setattr(unused_transfers.time, "time", lambda: NOW)
    chain, store = Chain(dust_every=WEEK_BLOCKS // 3), Store()
    found = await list_unused(chain, store, WALLET, days=7, hours=0)
    assert len(found) >= 3
    assert sum(rests) == pytest.approx(0.2 * (chain.log_queries - 1))


async def test_an_error_that_nobody_foresaw_is_logged_and_shown(rests):
    chain = Chain(dust_every=WEEK_BLOCKS // 3)

    async def broken(function, transfers):
        raise sqlite3.OperationalError("disk I/O error")

    search = _search(chain)
    search._store.sum = broken
    with structlog.testing.capture_logs() as lines:
        await search.refresh(60.0)
    assert search.problem == "The search has failed; the gateway's log says why."
    assert search.searched_at is None
    (line,) = lines
    assert (line["event"], line["log_level"]) == ("transfers.search_failed", "error")
    # The next search begins where this one stopped.
    search._store, search.failed_at = Store(), None
    await search.refresh(60.0)
    assert (search.problem, len(search.known)) == (None, 3)


async def test_a_search_that_was_cut_off_goes_on_and_counts_nothing_twice(rests):
    chain = Chain(dust_every=WEEK_BLOCKS // 20)
    search = _search(chain)
    chain.silent_after = 25
    await search.refresh(60.0)
    assert search.problem is not None
    asked, chain.silent_after, search.failed_at = chain.log_queries, None, None
    await search.refresh(60.0)
    numbers = [one.transfer.block_number for one in search.known]
    assert search.problem is None
    assert len(numbers) == len(set(numbers)) == 20
    assert chain.log_queries <= asked + 1
