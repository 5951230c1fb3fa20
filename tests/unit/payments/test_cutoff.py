"""The cutoff block: searched for once, however many buyers come before it is known."""

import asyncio

import pytest

from gateway.domain import Block
from gateway.payments.accept import Acceptance
from gateway.store import SqliteStore
from gateway_testing.fakes.chain import HEAD, NOW, FakeChain
from tests.migrated_databases import put_database

# Five blocks share the second of the database's birth; this is the last of them.
_CUTOFF = HEAD - 496


class SlowChain(FakeChain):
    """Records the requested blocks, and responds after a moment."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: list[int] = []

    async def block_at(self, number: int) -> Block:
        self.numbers.append(number)
        await asyncio.sleep(0)
        return await super().block_at(number)


@pytest.fixture
async def store(tmp_path):
    async with SqliteStore(put_database(tmp_path / "gateway.db")) as opened:
        yield opened


def _acceptance(store: SqliteStore, chain: FakeChain) -> Acceptance:
    async def nothing() -> None: ...

    return Acceptance(
        store=store,
        chain=chain,
        now=lambda: float(NOW),
        born_at=NOW - 100.0,
        check_serving=lambda *_: None,
        check_maker=lambda *_: None,
        check_wallet=nothing,
    )


async def test_all_buyers_share_the_search_for_the_cutoff_block(store):
    chain = SlowChain()
    payments = _acceptance(store, chain)
    found = await asyncio.gather(*(payments.cutoff_block() for _ in range(20)))
    assert found == [_CUTOFF] * 20
    assert len(chain.numbers) == len(set(chain.numbers))


async def test_a_known_cutoff_block_costs_no_call(store):
    await _acceptance(store, SlowChain()).cutoff_block()
    chain = SlowChain()
    assert await _acceptance(store, chain).cutoff_block() == _CUTOFF
    assert not chain.numbers
