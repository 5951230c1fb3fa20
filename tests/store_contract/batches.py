"""Contract of every store: a transaction that settles several payments."""

import asyncio

import attrs
import pytest

from gateway.contracts import NoFreeNonce, SignedTransaction
from gateway.contracts.store import FailedSettlement
from gateway.domain import PaymentState, Task
from gateway.domain.eip3009 import usual_gas
from gateway.store import SqlStore
from gateway_testing.facts import (
    NOW,
    PAYER,
    SIGNER,
    WALLET,
    known,
    paying,
    receipt_of,
    reserved,
    settling,
    signed_transaction,
    unsigned_batch,
)


async def _batch(store: SqlStore, count: int = 3) -> tuple[list[Task], SignedTransaction]:
    """Reserve payments, and record a batch of them."""
    tasks = [await reserved(store, nonce) for nonce in range(1, count + 1)]
    batch = unsigned_batch(*(task.payment.id for task in tasks))
    written = await store.begin_batch(batch, now=NOW)
    assert written is not None
    return tasks, written[0]


def _failed(sent: SignedTransaction, failure: str) -> FailedSettlement:
    return FailedSettlement(payer=PAYER, tx_hash=sent.tx_hash, at=NOW, failure=failure, fee_wei=700)


class BatchesContract:
    """Batches: members, repeated sending, and the outcome of each payment."""

    async def test_a_batch_is_one_nonce_and_the_transaction_of_each_payment(
        self, store: SqlStore
    ) -> None:
        tasks, sent = await _batch(store)
        assert sent == signed_transaction(0, 103)
        for task in tasks:
            assert await store.unmined_of(task.payment.id, SIGNER) == sent
            assert await store.nonces_of(task.payment.id, SIGNER, WALLET) == 1
            assert (await known(store, task.id)).payment.state is PaymentState.SETTLING
        ((_, listed),) = await store.unmined(SIGNER)
        assert listed == sent
        assert await store.next_nonce(SIGNER, 0) == 1

    async def test_who_is_closed_or_signed_for_is_left_out_of_a_batch(
        self, store: SqlStore
    ) -> None:
        first, second, closed = [await reserved(store, nonce) for nonce in (1, 2, 3)]
        alone = await settling(store, 4)
        await store.release(closed.payment.id, now=NOW)
        ids = [task.payment.id for task in (first, closed, alone, second)]
        written = await store.begin_batch(unsigned_batch(*ids), now=NOW)
        taken = [first.payment.id, second.payment.id]
        assert written == (signed_transaction(1, 102), taken)
        assert await store.unmined_of(alone.payment.id, SIGNER) == signed_transaction(0)
        assert await store.nonces_of(closed.payment.id, SIGNER) == 0

    async def test_one_payment_is_no_batch_and_nothing_is_written(self, store: SqlStore) -> None:
        task, alone = await reserved(store, 1), await settling(store, 2)
        batch = unsigned_batch(task.payment.id, alone.payment.id)
        assert await store.begin_batch(batch, now=NOW) is None
        assert (await known(store, task.id)).payment.state is PaymentState.RESERVED
        assert await store.next_nonce(SIGNER, 0) == 1

    async def test_a_payment_is_in_one_batch_only(self, store: SqlStore) -> None:
        tasks = [await reserved(store, nonce) for nonce in range(1, 7)]
        ids = [task.payment.id for task in tasks]
        outcomes = await asyncio.gather(
            *(store.begin_batch(unsigned_batch(*ids[at : at + 4]), now=NOW) for at in (0, 1, 2))
        )
        taken = [payment for outcome in outcomes if outcome is not None for payment in outcome[1]]
        assert len(taken) == len({*taken}) > 3
        nonces = sorted(sent.nonce for _, sent in await store.unmined(SIGNER))
        assert nonces == list(range(len(nonces)))

    async def test_a_batch_of_a_key_with_too_many_waiting_is_not_signed(
        self, store: SqlStore
    ) -> None:
        await settling(store, 1)
        ids = [(await reserved(store, nonce)).payment.id for nonce in (2, 3)]
        with pytest.raises(NoFreeNonce, match="wait"):
            await store.begin_batch(unsigned_batch(*ids, most_waiting=1), now=NOW)
        assert await store.nonces_of(ids[0], SIGNER) == 0

    async def test_a_dearer_batch_settles_the_same_payments(self, store: SqlStore) -> None:
        tasks, _ = await _batch(store)
        dearer = signed_transaction(0, 150)
        await store.add_replacement(tasks[0].payment.id, dearer)
        for task in tasks:
            assert await store.unmined_of(task.payment.id, SIGNER) == dearer
            assert await store.nonces_of(task.payment.id, SIGNER) == 1

    async def test_what_a_batch_did_not_settle_is_signed_for_again(self, store: SqlStore) -> None:
        (paid, unpaid), _ = await _batch(store, 2)
        await store.settle(paid.payment.id, paying(paid), now=NOW)
        await store.mark_mined(SIGNER, 1)
        assert await store.unmined_of(unpaid.payment.id, SIGNER) is None
        assert (await known(store, unpaid.id)).payment.state is PaymentState.SETTLING
        await store.begin_settling(unpaid.payment.id, signed_transaction(1), now=NOW)
        assert await store.unmined_of(unpaid.payment.id, SIGNER) == signed_transaction(1)
        assert await store.nonces_of(unpaid.payment.id, SIGNER) == 2

    async def test_the_unpaid_of_a_mined_batch_are_judged_one_by_one(self, store: SqlStore) -> None:
        tasks, sent = await _batch(store)
        await store.mark_mined(SIGNER, 1)
        await store.settle(tasks[0].payment.id, paying(tasks[0]), now=NOW)
        unjudged = await store.payers.unjudged()
        assert [payment.id for payment, _ in unjudged] == [task.payment.id for task in tasks[1:]]
        assert {one for _, one in unjudged} == {attrs.evolve(sent, payments=3)}
        await store.payers.judge(sent, _failed(sent, "spent"), tasks[1].payment.id)
        ((left, _),) = await store.payers.unjudged()
        assert left.id == tasks[2].payment.id
        await store.payers.judge(sent, _failed(sent, "unexplained"), left.id)
        assert await store.payers.unjudged() == []
        failure = await store.payers.failure_of(PAYER, since=NOW - 1)
        assert failure == _failed(sent, "spent")
        assert await store.payers.failures(since=NOW - 1) == [failure]

    async def test_both_versions_of_a_batch_are_judged_with_one(self, store: SqlStore) -> None:
        tasks, _ = await _batch(store, 2)
        dearer = signed_transaction(0, 150)
        await store.add_replacement(tasks[0].payment.id, dearer)
        await store.mark_mined(SIGNER, 1)
        assert len(await store.payers.unjudged()) == 4
        for task in tasks:
            await store.payers.judge(dearer, _failed(dearer, "wallet"), task.payment.id)
        assert await store.payers.unjudged() == []

    async def test_a_batch_is_judged_as_a_whole_whatever_its_payments_became(
        self, store: SqlStore
    ) -> None:
        tasks, sent = await _batch(store, 2)
        await store.mark_mined(SIGNER, 1)
        for task in tasks:
            await store.settle(task.payment.id, paying(task), now=NOW)
        assert await store.payers.unjudged() == []
        assert await store.payers.unjudged_batches() == [attrs.evolve(sent, payments=2)]
        await store.payers.judge(sent, _failed(sent, "burned"))
        assert await store.payers.unjudged_batches() == []
        assert await store.failed_gas(since=NOW - 1) == 700
        assert await store.payers.failures(since=0) == []

    async def test_a_batch_that_succeeded_counts_with_the_gas_that_is_too_much(
        self, store: SqlStore
    ) -> None:
        _, sent = await _batch(store, 2)
        await store.mark_mined(SIGNER, 1)
        usual = usual_gas(2)
        await store.note_mined(receipt_of(sent, gas_used=usual, fee_wei=usual * 10))
        assert await store.failed_gas(since=NOW - 1) == 0
        await store.note_mined(receipt_of(sent, gas_used=3 * usual, fee_wei=3 * usual * 10))
        assert await store.payers.unjudged_batches() == []
        assert await store.failed_gas(since=NOW - 1) == 2 * usual * 10
        assert await store.payers.failures(since=0) == []

    async def test_a_released_payment_of_a_batch_is_open_until_it_is_judged(
        self, store: SqlStore
    ) -> None:
        tasks, sent = await _batch(store, 2)
        for task in tasks:
            await store.release(task.payment.id, now=NOW)
        await store.mark_mined(SIGNER, 1)
        assert (await store.payers.open_of(PAYER, now=NOW)).count == 2
        await store.payers.judge(sent, None, tasks[1].payment.id)
        assert (await store.payers.open_of(PAYER, now=NOW)).count == 1
        await store.payers.judge(sent, None, tasks[0].payment.id)
        assert (await store.payers.open_of(PAYER, now=NOW)).count == 0
