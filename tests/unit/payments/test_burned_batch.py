"""A batch whose gas a payer's code used up: it counts at once, and costs few calls."""

from collections import Counter

import attrs
import pytest

from gateway.domain.eip3009 import BASE
from gateway.payments.failed_settlements import FailedSettlements
from gateway.store import SqliteStore
from gateway_testing.facts import (
    NOW,
    SIGNER,
    receipt_of,
    reserved,
    unsigned_batch,
)
from gateway_testing.fakes.chain import FakeChain
from tests.migrated_databases import put_database

BURNED_GAS = 15_000_000


class Chain(FakeChain):
    """Tells every payer's balance, and that its own nonce rose. Counts the calls by name."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = Counter()

    async def receipt(self, tx_hash):
        self.calls["receipt"] += 1
        return await super().receipt(tx_hash)

    async def block_at(self, number):
        self.calls["block"] += 1
        return await super().block_at(number)

    async def code(self, address, *, at=None):
        return b""

    async def call_uint(self, data, *, at=None):
        return 0

    async def transaction_count(self, address, *, at):
        return at.timestamp


@pytest.fixture
async def store(tmp_path):
    async with SqliteStore(put_database(tmp_path / "gateway.db")) as opened:
        yield opened


async def burned_batch(store, chain, count):
    """Record a batch that was mined and undone as a whole; return its transaction."""
    tasks = [await reserved(store, nonce) for nonce in range(1, count + 1)]
    batch = unsigned_batch(*(task.payment.id for task in tasks))
    sent, _ = await store.begin_batch(batch, now=NOW)
    await store.mark_mined(SIGNER, 1)
    chain.receipts[sent.tx_hash] = attrs.evolve(
        receipt_of(sent, gas_used=BURNED_GAS, fee_wei=BURNED_GAS), succeeded=False
    )
    return sent


@pytest.mark.parametrize("count", [2, 30])
async def test_the_calls_for_a_batch_do_not_grow_with_its_payments(store, count):
    chain = Chain()
    await burned_batch(store, chain, count)
    await FailedSettlements(store, chain, BASE, lambda: NOW).judge_all()
    assert await store.payers.unjudged() == []
    assert await store.payers.unjudged_batches() == []
    assert chain.calls["receipt"] == 1
    assert chain.calls["block"] < 40


async def test_what_a_batch_burned_counts_before_its_payments_are_judged(store):
    chain, counted = Chain(), []
    await burned_batch(store, chain, 3)

    async def code(address, *, at=None):
        counted.append(await store.failed_gas(since=NOW - 1))
        return b""

    chain.code = code
    await FailedSettlements(store, chain, BASE, lambda: NOW).judge_all()
    assert counted == [BURNED_GAS] * 3
    failure = await store.payers.failures(since=NOW - 1)
    assert {one.failure for one in failure} == {"wallet"}
