"""Contract of every store: incoming payments with `reserve`, `accept_direct`, repeats."""

import asyncio

import attrs
import pytest

from gateway.contracts.store import ReserveLimits
from gateway.domain import (
    PaymentState,
    Task,
    TaskStatus,
)
from gateway.errors import IdempotencyConflict, InsufficientPayment, TxAlreadyUsed
from gateway.store import SqlStore
from gateway_testing.facts import (
    NOW,
    PAYER,
    PRICE,
    WALLET,
    authorization,
    key_of,
    kinds,
    known,
    new_task,
    paying,
    queued,
    reserved,
    transfer,
    tx_hash,
)


class TakingContract:
    """Reservations, direct transfers, Idempotency-Keys: alone, repeated, late and concurrent."""

    # -- reserve

    async def test_a_reservation_holds_its_task_until_the_money_is_there(
        self, store: SqlStore
    ) -> None:
        task = await reserved(store)
        assert (task.status, task.payment.state) == (TaskStatus.HELD, PaymentState.RESERVED)
        assert task.payment.authorization == authorization()
        assert task.payment.payer == PAYER
        assert task.payment.search_from_block == 7
        assert task.payment.paid_tx is None
        assert await store.find_claim(key_of(authorization())) == task == await store.task(task.id)
        assert await store.open_payments() == [task.payment]
        assert await store.queue.lease(9, lease_s=60, now=NOW + 10**6) == []

    async def test_of_fifty_at_once_one_reserves_a_key(self, store: SqlStore) -> None:
        signed = authorization()
        outcomes = await asyncio.gather(
            *(store.reserve(new_task(), signed, key_of(signed), 0) for _ in range(50))
        )
        assert sum(outcome is not None for outcome in outcomes) == 1
        assert await store.counts() == {"tasks": {"held": 1}, "payments": {"reserved": 1}}

    async def test_a_nonce_is_the_payers_own(self, store: SqlStore) -> None:
        for sender in (PAYER, WALLET):
            signed = authorization(1, sender)
            assert await store.reserve(new_task(), signed, key_of(signed), 0)

    async def test_nothing_of_a_refused_reservation_remains(self, store: SqlStore) -> None:
        await reserved(store, 1, id="same")
        other = authorization(2)
        with pytest.raises(Exception, match=r"(?i)unique"):
            await store.reserve(new_task(id="same"), other, key_of(other), 0)
        assert await store.find_claim(key_of(other)) is None
        assert len(await store.open_payments()) == 1

    async def test_an_unknown_key_is_nobodys(self, store: SqlStore) -> None:
        assert await store.find_claim("auth:nobody") is None

    async def test_a_repeated_reservation_of_the_same_task_is_that_task(
        self, store: SqlStore
    ) -> None:
        """As after a COMMIT whose response was lost; another request finds the claim taken."""
        new, signed = new_task(), authorization()
        limits = ReserveLimits(most_open=1, balance_units=10**9, held_file_bytes=0)
        made = [
            await store.reserve(new, signed, key_of(signed), 7, limits=limits) for _ in range(2)
        ]
        assert made[0] == made[1] is not None
        assert await store.reserve(new_task(), signed, key_of(signed), 7, limits=limits) is None

    # -- accept_direct

    async def test_a_repeated_purchase_of_the_same_task_is_that_task(self, store: SqlStore) -> None:
        """As after a COMMIT whose response was lost; another request finds the transaction used."""
        new = new_task()
        sold = [await store.accept_direct(new, tx_hash(1), [transfer()], None) for _ in range(2)]
        assert sold[0] == sold[1]
        with pytest.raises(TxAlreadyUsed):
            await store.accept_direct(new_task(), tx_hash(1), [transfer()], None)

    async def test_a_transfer_pays_at_once(self, store: SqlStore) -> None:
        task = await store.accept_direct(new_task(), tx_hash(1), [transfer(units=30_000)], None)
        assert (task.status, task.payment.state) == (TaskStatus.QUEUED, PaymentState.SETTLED)
        assert (task.payment.paid_tx, task.payment.paid_units) == (tx_hash(1), 30_000)
        assert await store.find_claim(f"tx:{tx_hash(1)}") == task
        assert await store.open_payments() == []

    async def test_of_fifty_at_once_one_is_paid_by_a_transaction(self, store: SqlStore) -> None:
        outcomes = await asyncio.gather(*(queued(store) for _ in range(50)), return_exceptions=True)
        assert kinds(outcomes).count(Task) == 1
        assert kinds(outcomes).count(TxAlreadyUsed) == 49
        assert await store.counts() == {"tasks": {"queued": 1}, "payments": {"settled": 1}}

    async def test_a_settlements_transfer_pays_nothing_else(self, store: SqlStore) -> None:
        await reserved(store, 1)
        used = transfer(key=key_of(authorization(1)))
        with pytest.raises(TxAlreadyUsed):
            await store.accept_direct(new_task(), tx_hash(1), [used], None)
        assert (await store.counts())["tasks"] == {"held": 1}

    async def test_an_authorization_of_a_released_payment_stays_claimed(
        self, store: SqlStore
    ) -> None:
        task = await reserved(store, 1)
        await store.release(task.payment.id, now=NOW)
        assert await store.reserve(new_task(), authorization(), key_of(authorization()), 0) is None

    async def test_a_transfer_used_directly_takes_its_authorization_with_it(
        self, store: SqlStore
    ) -> None:
        signed = authorization(1)
        paid = transfer(key=key_of(signed))
        task = await store.accept_direct(new_task(), tx_hash(1), [paid], None)
        assert await store.reserve(new_task(), signed, key_of(signed), 0) is None
        assert await store.find_claim(key_of(signed)) == task

    async def test_the_first_free_transfer_that_suffices_is_used(self, store: SqlStore) -> None:
        await reserved(store, 1)
        transfers = [
            transfer(index=1, key=key_of(authorization(1))),
            transfer(index=3, units=PRICE - 1),
            transfer(index=4, units=PRICE + 1),
            transfer(index=6, units=PRICE, key=key_of(authorization(2))),
        ]
        task = await store.accept_direct(new_task(), tx_hash(1), transfers, None)
        assert task.payment.paid_units == PRICE + 1
        later = authorization(2)
        assert await store.reserve(new_task(), later, key_of(later), 0)  # its own transfer is free

    async def test_small_transfers_do_not_add_up(self, store: SqlStore) -> None:
        transfers = [transfer(index=index, units=PRICE - 1) for index in range(3)]
        with pytest.raises(InsufficientPayment):
            await store.accept_direct(new_task(), tx_hash(1), transfers, None)
        assert await store.find_claim(f"tx:{tx_hash(1)}") is None
        await queued(store, 1)

    async def test_a_used_transaction_is_used_however_many_transfers_it_has(
        self, store: SqlStore
    ) -> None:
        transfers = [transfer(index=index) for index in range(2)]
        await store.accept_direct(new_task(), tx_hash(1), transfers, None)
        with pytest.raises(TxAlreadyUsed):
            await store.accept_direct(new_task(), tx_hash(1), transfers[1:], None)

    async def test_used_is_said_before_insufficient(self, store: SqlStore) -> None:
        await queued(store, 1)
        with pytest.raises(TxAlreadyUsed):
            await store.accept_direct(new_task(), tx_hash(1), [transfer(units=1)], None)

    async def test_two_transactions_pay_two_tasks(self, store: SqlStore) -> None:
        first, second = await asyncio.gather(queued(store, 1), queued(store, 2))
        assert first.id != second.id
        assert (await store.counts())["payments"] == {"settled": 2}

    async def test_one_transaction_settles_many_authorizations(self, store: SqlStore) -> None:
        for nonce in (1, 2):
            task = await reserved(store, nonce)
            assert await store.settle(task.payment.id, paying(task, 9, index=nonce), now=NOW)

    async def test_one_transfer_never_settles_two(self, store: SqlStore) -> None:
        first, second = await reserved(store, 1), await reserved(store, 2)
        assert await store.settle(first.payment.id, paying(first), now=NOW)
        for strange in (paying(first), transfer()):
            with pytest.raises(RuntimeError, match="not of payment"):
                await store.settle(second.payment.id, strange, now=NOW)
        assert (await known(store, second.id)).payment.state is PaymentState.RESERVED

    @pytest.mark.parametrize("is_proven", [True, False])
    async def test_a_refund_knows_whether_the_payer_signed(
        self, store: SqlStore, *, is_proven: bool
    ) -> None:
        paid = [transfer()]
        task = await store.accept_direct(new_task(), tx_hash(1), paid, None, is_proven=is_proven)
        (lease,) = await store.queue.lease(1, lease_s=60, now=NOW)
        await store.queue.fail(lease, details="timed_out", error="Too late.", now=NOW)
        case = await store.refunds.case(task.id)
        assert case is not None
        assert case.payer_proven is is_proven

    # -- idempotency

    async def test_an_idempotency_key_repeats_its_task(self, store: SqlStore) -> None:
        task = new_task()
        first = await store.accept_direct(task, tx_hash(1), [transfer(1)], "key")
        again = attrs.evolve(task, id="another")
        assert await store.accept_direct(again, tx_hash(1), [transfer(1)], "key") == first
        assert await store.find_direct(tx_hash(1), "key", task.request_hash) == first
        assert await store.find_direct(tx_hash(2), "key", task.request_hash) is None

    @pytest.mark.parametrize("key", [None, "other"])
    async def test_a_used_transaction_asks_for_its_idempotency_key(
        self, store: SqlStore, key: str | None
    ) -> None:
        task = new_task()
        await store.accept_direct(task, tx_hash(1), [transfer(1)], "key")
        await store.accept_direct(new_task(), tx_hash(2), [transfer(2)], "other")
        with pytest.raises(TxAlreadyUsed):
            await store.find_direct(tx_hash(1), key, task.request_hash)

    async def test_an_idempotency_key_belongs_to_the_sender_of_the_transfer(
        self, store: SqlStore
    ) -> None:
        stranger = attrs.evolve(transfer(2), sender="0x" + "9" * 40)
        first = await store.accept_direct(new_task(), tx_hash(1), [transfer(1)], "key")
        other = new_task(request_hash="other")
        assert await store.accept_direct(other, tx_hash(2), [stranger], "key") != first

    async def test_an_idempotency_key_means_one_request(self, store: SqlStore) -> None:
        await store.accept_direct(new_task(), tx_hash(1), [transfer(1)], "key")
        other = new_task(request_hash="other")
        with pytest.raises(IdempotencyConflict):
            await store.accept_direct(other, tx_hash(2), [transfer(2)], "key")
        assert await store.find_claim(f"tx:{tx_hash(2)}") is None

    async def test_fifty_repeats_at_once_make_one_task(self, store: SqlStore) -> None:
        outcomes = await asyncio.gather(
            *(store.accept_direct(new_task(), tx_hash(1), [transfer(1)], "key") for _ in range(50))
        )
        assert len({task.id for task in outcomes}) == 1

    async def test_a_refused_payment_leaves_its_idempotency_key_free(self, store: SqlStore) -> None:
        with pytest.raises(InsufficientPayment):
            await store.accept_direct(new_task(), tx_hash(1), [transfer(units=1)], "key")
        await store.accept_direct(new_task(), tx_hash(2), [transfer(2)], "key")

    async def test_a_key_of_an_authorization_gives_its_task_to_the_next(
        self, store: SqlStore
    ) -> None:
        first, second = authorization(1), authorization(2)
        task = new_task()
        reserved = await store.reserve(task, first, key_of(first), 0, "key")
        again = attrs.evolve(task, id="another")
        assert await store.reserve(again, second, key_of(second), 0, "key") == reserved
        assert await store.find_idempotent("key") == reserved
        assert await store.find_claim(key_of(second)) is None
        assert await store.reserve(again, first, key_of(first), 0, "key") is None  # claimed

    async def test_a_key_of_an_authorization_means_one_request(self, store: SqlStore) -> None:
        first, second = authorization(1), authorization(2)
        await store.reserve(new_task(), first, key_of(first), 0, "key")
        other = new_task(request_hash="other")
        with pytest.raises(IdempotencyConflict):
            await store.reserve(other, second, key_of(second), 0, "key")
        assert await store.find_claim(key_of(second)) is None

    async def test_of_fifty_authorizations_at_once_one_has_the_key(self, store: SqlStore) -> None:
        signed = [authorization(nonce) for nonce in range(50)]
        outcomes = await asyncio.gather(
            *(store.reserve(new_task(), one, key_of(one), 0, "key") for one in signed)
        )
        assert len({task.id for task in outcomes if task is not None}) == 1
        assert await store.counts() == {"tasks": {"held": 1}, "payments": {"reserved": 1}}
        claims = [await store.find_claim(key_of(one)) for one in signed]
        assert sum(claim is not None for claim in claims) == 1

    async def test_a_released_payment_frees_its_key_and_a_settled_one_never(
        self, store: SqlStore
    ) -> None:
        first, second, third = (authorization(nonce) for nonce in (1, 2, 3))
        task = await store.reserve(new_task(), first, key_of(first), 0, "key")
        assert task is not None
        await store.release(task.payment.id, now=NOW)
        assert await store.find_idempotent("key") is None
        next_task = await store.reserve(new_task(), second, key_of(second), 0, "key")
        assert next_task is not None
        assert next_task.id != task.id
        assert await store.settle(next_task.payment.id, paying(next_task), now=NOW)
        assert not await store.release(next_task.payment.id, now=NOW)
        known_task = await store.reserve(new_task(), third, key_of(third), 0, "key")
        assert known_task is not None
        assert known_task.id == next_task.id

    async def test_without_a_key_every_authorization_has_its_own_task(
        self, store: SqlStore
    ) -> None:
        tasks = [await reserved(store, nonce) for nonce in (1, 2)]
        assert tasks[0].id != tasks[1].id
