"""Contract of every store during a settlement: journal, settle, release and nonces."""

import asyncio
from typing import Any

import attrs
import pytest

from gateway.contracts import NoFreeNonce, SignedTransaction
from gateway.domain import (
    Payment,
    PaymentState,
    TaskStatus,
)
from gateway.store import SqlStore
from gateway_testing.facts import (
    NOW,
    PRICE,
    SIGNER,
    WALLET,
    kinds,
    known,
    paying,
    queued,
    reserved,
    settling,
    signed_transaction,
    tx_hash,
    unsigned_transaction,
)


class SettlingContract:
    """Nonces, signed transactions, settlements and releases."""

    # -- the journal

    async def test_a_nonce_is_used_up_with_the_transaction_that_has_it(
        self, store: SqlStore
    ) -> None:
        task = await reserved(store)
        assert await store.next_nonce(SIGNER, 3) == 3
        assert await store.next_nonce(SIGNER, 3) == 3  # not used: signing failed
        transaction = signed_transaction(3)
        await store.begin_settling(task.payment.id, transaction, now=NOW)
        assert await store.next_nonce(SIGNER, 3) == 4
        assert await store.unmined_of(task.payment.id, SIGNER) == transaction
        assert (await known(store, task.id)).payment.state is PaymentState.SETTLING

    async def test_the_next_nonce_is_the_first_free_one(self, store: SqlStore) -> None:
        """A gap, caused by an RPC endpoint with too high a nonce, remains unless it is filled."""
        await settling(store, 1, chain_nonce=5)
        await settling(store, 2, chain_nonce=5)
        await settling(store, 3, chain_nonce=8)
        assert await store.next_nonce(SIGNER, 5) == 7
        assert await store.next_nonce(SIGNER, 6) == 7  # 6 is signed
        assert await store.next_nonce(SIGNER, 8) == 9
        assert await store.next_nonce(SIGNER, 20) == 20
        assert await store.next_nonce(WALLET, 0) == 0

    async def test_payments_signed_at_once_get_a_nonce_each(self, store: SqlStore) -> None:
        tasks = [await reserved(store, number) for number in range(1, 9)]
        begin = [
            store.begin_settling(task.payment.id, unsigned_transaction(3), now=NOW)
            for task in tasks
        ]
        signed = [one for one in await asyncio.gather(*begin) if one is not None]
        assert sorted(one.nonce for one in signed) == list(range(3, 11))
        for task, one in zip(tasks, signed, strict=True):
            assert await store.unmined_of(task.payment.id, SIGNER) == one
            assert (await known(store, task.id)).payment.state is PaymentState.SETTLING

    async def test_the_error_of_one_payment_does_not_concern_those_signed_with_it(
        self, store: SqlStore
    ) -> None:
        closed, other, late, last = [await reserved(store, number) for number in range(1, 5)]
        await store.release(closed.payment.id, now=NOW)
        begin = [
            store.begin_settling(task.payment.id, unsigned_transaction(0, used), now=NOW)
            for task, used in ((closed, 0), (other, 0), (late, 1), (last, 0), (last, 0))
        ]
        outcomes = await asyncio.gather(*begin, return_exceptions=True)
        assert kinds(outcomes) == [
            RuntimeError,
            SignedTransaction,
            RuntimeError,
            SignedTransaction,
            SignedTransaction,
        ]
        assert outcomes[3] == outcomes[4]
        assert await store.waiting_of(SIGNER, 0) == 2
        assert (await known(store, late.id)).payment.state is PaymentState.RESERVED

    async def test_a_taken_nonce_is_refused_and_nothing_is_written(self, store: SqlStore) -> None:
        await settling(store, 1)
        task = await reserved(store, 2)
        with pytest.raises(RuntimeError):
            await store.begin_settling(task.payment.id, signed_transaction(0, 200), now=NOW)
        assert await store.unmined_of(task.payment.id, SIGNER) is None
        assert (await known(store, task.id)).payment.state is PaymentState.RESERVED

    async def test_a_signed_transaction_that_is_recorded_again_is_the_same(
        self, store: SqlStore
    ) -> None:
        """As after a COMMIT whose response was lost."""
        task = await reserved(store)
        sent = signed_transaction(0)
        for _ in range(2):
            assert await store.begin_settling(task.payment.id, sent, now=NOW) == sent
        assert await store.nonces_of(task.payment.id, SIGNER) == 1

    async def test_of_fifty_at_once_one_gets_a_nonce(self, store: SqlStore) -> None:
        tasks = [await reserved(store, nonce) for nonce in range(50)]
        nonce = await store.next_nonce(SIGNER, 0)
        outcomes = await asyncio.gather(
            *(
                store.begin_settling(task.payment.id, signed_transaction(nonce, fee), now=NOW)
                for fee, task in enumerate(tasks)
            ),
            return_exceptions=True,
        )
        assert kinds(outcomes).count(RuntimeError) == 49
        assert len(await store.unmined(SIGNER)) == 1

    async def test_fifty_unsigned_at_once_get_fifty_nonces_in_a_row(self, store: SqlStore) -> None:
        tasks = [await reserved(store, nonce) for nonce in range(50)]
        sent = await asyncio.gather(
            *(
                store.begin_settling(task.payment.id, unsigned_transaction(7), now=NOW)
                for task in tasks
            )
        )
        in_order = [signed_transaction(nonce) for nonce in range(7, 57)]
        # Either payment may get either nonce.
        assert sorted(filter(None, sent), key=lambda one: one.nonce) == in_order
        assert [transaction for _, transaction in await store.unmined(SIGNER)] == in_order

    async def test_a_write_that_fails_leaves_no_gap(self, store: SqlStore) -> None:
        closed, task = await reserved(store, 1), await reserved(store, 2)
        await store.release(closed.payment.id, now=NOW)
        outcomes = await asyncio.gather(
            store.begin_settling(closed.payment.id, unsigned_transaction(), now=NOW),
            store.begin_settling(task.payment.id, unsigned_transaction(), now=NOW),
            return_exceptions=True,
        )
        assert isinstance(outcomes[0], RuntimeError)
        assert outcomes[1] == signed_transaction(0)

    async def test_a_signature_that_fails_uses_up_no_nonce(self, store: SqlStore) -> None:
        def sign(nonce: int) -> SignedTransaction:
            raise ValueError(nonce)

        task = await reserved(store)
        broken = attrs.evolve(unsigned_transaction(), sign=sign)
        with pytest.raises(ValueError, match="0"):
            await store.begin_settling(task.payment.id, broken, now=NOW)
        assert (await known(store, task.id)).payment.state is PaymentState.RESERVED
        sent = await store.begin_settling(task.payment.id, unsigned_transaction(), now=NOW)
        assert sent == signed_transaction(0)

    @pytest.mark.parametrize("second", [SIGNER, WALLET])
    async def test_two_submits_of_one_payment_send_one_transaction(
        self, store: SqlStore, second: str
    ) -> None:
        """The second submit may use another key of the gateway."""
        task = await reserved(store)
        first, other = await asyncio.gather(
            store.begin_settling(task.payment.id, unsigned_transaction(), now=NOW),
            store.begin_settling(task.payment.id, unsigned_transaction(signer=second), now=NOW),
        )
        # Both send the transaction that was recorded first.
        assert first == other
        assert first in (signed_transaction(0), signed_transaction(0, signer=second))
        written = [*await store.unmined(SIGNER), *await store.unmined(WALLET)]
        assert [transaction for _, transaction in written] == [first]

    async def test_a_key_that_was_replaced_is_not_waited_for(self, store: SqlStore) -> None:
        task = await settling(store)
        new_key = unsigned_transaction(1, signer=WALLET, signers=(WALLET,))
        sent = await store.begin_settling(task.payment.id, new_key, now=NOW)
        assert sent == signed_transaction(1, signer=WALLET)

    async def test_a_nonce_used_up_since_the_simulation_stops_the_next(
        self, store: SqlStore
    ) -> None:
        task = await settling(store)
        await store.mark_mined(SIGNER, 1)
        late = unsigned_transaction(1, used_nonces=0)
        with pytest.raises(RuntimeError, match="meanwhile"):
            await store.begin_settling(task.payment.id, late, now=NOW)
        known_use = unsigned_transaction(1, used_nonces=1)
        sent = await store.begin_settling(task.payment.id, known_use, now=NOW)
        assert sent == signed_transaction(1)
        assert await store.nonces_of(task.payment.id, SIGNER, WALLET) == 2

    async def test_a_key_with_too_many_waiting_signs_no_more(self, store: SqlStore) -> None:
        for nonce in (1, 2, 3):
            await settling(store, nonce, chain_nonce=4)
        task = await reserved(store, 4)
        full = unsigned_transaction(4, most_waiting=3)
        with pytest.raises(NoFreeNonce, match="wait"):
            await store.begin_settling(task.payment.id, full, now=NOW)
        assert (await known(store, task.id)).payment.state is PaymentState.RESERVED
        after_a_block = unsigned_transaction(5, most_waiting=3)
        sent = await store.begin_settling(task.payment.id, after_a_block, now=NOW)
        assert sent == signed_transaction(7)

    async def test_a_full_key_still_fills_a_gap_below_what_waits(self, store: SqlStore) -> None:
        # An RPC endpoint counted too high once.
        for number in (1, 2, 3):
            await settling(store, number, chain_nonce=10)
        filling = []
        for number in range(4, 8):
            task = await reserved(store, number)
            begin = store.begin_settling(
                task.payment.id, unsigned_transaction(7, most_waiting=3), now=NOW
            )
            filling.append(await asyncio.gather(begin, return_exceptions=True))
        assert kinds([one for (one,) in filling]) == [*[SignedTransaction] * 3, NoFreeNonce]
        assert [one.nonce for (one,) in filling[:3]] == [7, 8, 9]

    async def test_what_waits_is_counted_for_each_key(self, store: SqlStore) -> None:
        for nonce in (1, 2, 3):
            await settling(store, nonce, chain_nonce=4)
        assert await store.waiting_of(SIGNER, 4) == 3
        assert await store.waiting_of(SIGNER, 6) == 1
        # Those above a gap are not mined before it is filled.
        assert await store.waiting_of(SIGNER, 3) == 0
        assert await store.waiting_of(WALLET, 0) == 0

    async def test_a_closed_payment_is_not_settled_again(self, store: SqlStore) -> None:
        task = await reserved(store)
        await store.release(task.payment.id, now=NOW)
        await store.next_nonce(SIGNER, 0)
        for transaction in (None, signed_transaction(0)):
            with pytest.raises(RuntimeError):
                await store.begin_settling(task.payment.id, transaction, now=NOW)
        assert await store.next_nonce(SIGNER, 0) == 0
        assert await store.unmined(SIGNER) == []

    async def test_somebody_else_may_send_for_us(self, store: SqlStore) -> None:
        task = await reserved(store)
        await store.begin_settling(task.payment.id, None, now=NOW)
        assert (await known(store, task.id)).payment.state is PaymentState.SETTLING
        assert await store.unmined_of(task.payment.id, SIGNER) is None

    async def test_the_dearest_of_one_nonce_is_the_one_to_send(self, store: SqlStore) -> None:
        task = await settling(store)
        dearer = signed_transaction(0, 150)
        await store.add_replacement(task.payment.id, dearer)
        assert await store.unmined_of(task.payment.id, SIGNER) == dearer
        ((payment, transaction),) = await store.unmined(SIGNER)
        assert (payment.id, transaction) == (task.payment.id, dearer)

    async def test_what_is_unmined_is_listed_by_nonce(self, store: SqlStore) -> None:
        tasks = [await settling(store, nonce) for nonce in (1, 2, 3)]
        await store.mark_mined(SIGNER, 1)
        listed = await store.unmined(SIGNER)
        assert [(payment.id, sent.nonce) for payment, sent in listed] == [
            (tasks[1].payment.id, 1),
            (tasks[2].payment.id, 2),
        ]
        assert await store.unmined(WALLET) == []
        assert await store.unmined_of(tasks[0].payment.id, SIGNER) is None

    async def test_a_payment_whose_nonce_another_used_gets_a_second_one(
        self, store: SqlStore
    ) -> None:
        task = await settling(store)
        await store.mark_mined(SIGNER, 1)
        nonce = await store.next_nonce(SIGNER, 1)
        await store.begin_settling(task.payment.id, signed_transaction(nonce), now=NOW)
        assert await store.unmined_of(task.payment.id, SIGNER) == signed_transaction(1)

    # -- settle and release

    @pytest.mark.parametrize("prepare", [reserved, settling])
    async def test_settling_queues_the_task_once(self, store: SqlStore, prepare: Any) -> None:
        task = await prepare(store)
        assert await store.settle(task.payment.id, paying(task, 5, index=3), now=NOW + 1)
        # As after a COMMIT whose response was lost.
        assert await store.settle(task.payment.id, paying(task, 5, index=3), now=NOW + 1)
        assert not await store.settle(task.payment.id, paying(task, 6), now=NOW + 2)
        assert not await store.release(task.payment.id, now=NOW + 2)
        after = await known(store, task.id)
        assert (after.status, after.payment.state) == (TaskStatus.QUEUED, PaymentState.SETTLED)
        assert (after.payment.paid_tx, after.payment.paid_units) == (tx_hash(5), PRICE)
        assert len(await store.queue.lease(9, lease_s=60, now=NOW + 1)) == 1

    @pytest.mark.parametrize("prepare", [reserved, settling])
    async def test_a_release_drops_the_task_once(self, store: SqlStore, prepare: Any) -> None:
        task = await prepare(store)
        assert await store.release(task.payment.id, now=NOW + 1)
        assert not await store.release(task.payment.id, now=NOW + 2)
        assert not await store.settle(task.payment.id, paying(task), now=NOW + 2)
        after = await known(store, task.id)
        assert (after.status, after.payment.state) == (TaskStatus.DROPPED, PaymentState.RELEASED)
        assert (after.code, after.completed_at) == ("PAYMENT_NOT_SETTLED", NOW + 1)
        assert after.is_done
        assert await store.queue.lease(9, lease_s=60, now=NOW + 10**6) == []
        assert await store.open_payments() == []

    async def test_a_settlement_and_a_release_at_once_have_one_winner(
        self, store: SqlStore
    ) -> None:
        task = await reserved(store)
        outcomes = await asyncio.gather(
            store.settle(task.payment.id, paying(task), now=NOW),
            store.release(task.payment.id, now=NOW),
        )
        assert sorted(outcomes) == [False, True]

    async def test_a_transfer_below_the_price_never_settles(self, store: SqlStore) -> None:
        task = await reserved(store)
        with pytest.raises(Exception, match=r"(?i)check"):
            await store.settle(task.payment.id, paying(task, units=PRICE - 1), now=NOW)
        assert (await known(store, task.id)).status is TaskStatus.HELD

    async def test_a_direct_payment_is_closed_from_the_start(self, store: SqlStore) -> None:
        task = await queued(store)
        assert not await store.release(task.payment.id, now=NOW)
        assert not await store.settle(task.payment.id, paying(task, 8), now=NOW)

    async def test_open_payments_come_oldest_first(self, store: SqlStore) -> None:
        tasks = [await reserved(store, nonce) for nonce in (3, 1, 2)]
        await store.release(tasks[1].payment.id, now=NOW)
        found: list[Payment] = await store.open_payments()
        assert [payment.id for payment in found] == [tasks[0].payment.id, tasks[2].payment.id]
