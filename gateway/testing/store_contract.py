"""What every store must do, as tests: subclass `StoreContract` and override its fixture `store`.

    class TestMyStore(StoreContract):
        @pytest.fixture
        async def store(self):
            async with MyStore() as store:
                yield store

Needs pytest and pytest-asyncio. T1 to TR are the transactions of docs/payments.md.
"""
# ruff: noqa: S101, PLR2004, D102 - tests assert, literal numbers are the expectation, names are sentences

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from typing import Any

import attrs
import pytest

from gateway.contracts import Lease, NewTask, SignedTransaction, Store
from gateway.domain import (
    Attachment,
    Authorization,
    Endpoint,
    GenerationRequest,
    Payment,
    PaymentState,
    StoredOutput,
    StoredResult,
    Task,
    TaskStatus,
    Transfer,
)
from gateway.errors import IdempotencyConflict, InsufficientPayment, TxAlreadyUsed
from gateway.usdc import BASE

NOW = 1_800_000_000.0
PRICE = 20_000  # units
PAYER = "0x" + "a1" * 20
WALLET = "0x" + "b2" * 20
SIGNER = "0x" + "c3" * 20
ENDPOINT = Endpoint(
    slug="picture",
    title="A picture",
    description="A picture.",
    model="pixel",
    provider="none",
    capability="text-to-image",
    price_units=PRICE,
)
RESULT = StoredResult(
    outputs=(
        StoredOutput(
            key="1/0.png",
            media_type="image/png",
            size_bytes=3,
            sha256="0" * 64,
            width=1,
            height=1,
        ),
    ),
    text="# A text",
)
_NUMBERS = itertools.count(1)


def tx_hash(number: int) -> str:
    """Return a made-up transaction hash."""
    return f"0x{number:064x}"


def new_task(**changes: Any) -> NewTask:
    """Return a task to accept; `changes` are fields of `NewTask`."""
    request = changes.pop("request", GenerationRequest(prompt="a boat"))
    task = NewTask(
        id=f"task-{next(_NUMBERS)}",
        endpoint=ENDPOINT,
        request=request,
        request_hash=request.fingerprint(ENDPOINT.slug),
        price_units=PRICE,
        created_at=NOW,
    )
    return attrs.evolve(task, **changes)


def authorization(nonce: int = 1, sender: str = PAYER) -> Authorization:
    """Return a signed authorization; its signature is not a real one."""
    return Authorization(
        sender=sender,
        recipient=WALLET,
        value_units=PRICE,
        valid_after=0,
        valid_before=int(NOW) + 300,
        nonce=tx_hash(nonce),
        signature=b"\1" * 65,
    )


def key_of(signed: Authorization) -> str:
    """Return the claim key of an authorization."""
    return BASE.authorization_key(signed.sender, signed.nonce)


def transfer(tx: int = 1, index: int = 0, units: int = PRICE, key: str | None = None) -> Transfer:
    """Return a transfer to the wallet; `key` pairs it with an authorization."""
    return Transfer(
        tx_hash=tx_hash(tx),
        log_index=index,
        sender=PAYER,
        amount_units=units,
        authorization_key=key,
    )


def signed_transaction(nonce: int, fee: int = 100, *, signer: str = SIGNER) -> SignedTransaction:
    """Return a transaction of a settlement key; hash and bytes follow from nonce and fee."""
    return SignedTransaction(
        signer=signer,
        nonce=nonce,
        tx_hash=tx_hash(1_000_000 * (nonce + 1) + fee),
        raw=b"raw %d %d" % (nonce, fee),
        max_fee_wei=fee,
        max_priority_wei=1,
        sent_at=NOW,
    )


async def reserved(store: Store, nonce: int = 1, **changes: Any) -> Task:
    """T1 for a new authorization."""
    signed = authorization(nonce)
    task = await store.reserve(new_task(**changes), signed, key_of(signed), 7)
    assert task is not None
    return task


async def settling(store: Store, nonce: int = 1, chain_nonce: int = 0) -> Task:
    """T1 and T2."""
    task = await reserved(store, nonce)
    number = await store.next_nonce(SIGNER, chain_nonce)
    await store.begin_settling(task.payment.id, signed_transaction(number), now=NOW)
    return task


async def queued(store: Store, tx: int = 1, **changes: Any) -> Task:
    """T1': a paid task that waits for a lane."""
    task = new_task(**changes)
    return await store.accept_direct(task, tx_hash(tx), [transfer(tx)], None)


async def leased(store: Store, tx: int = 1, **changes: Any) -> Lease:
    """T1' and T4."""
    await queued(store, tx, **changes)
    (lease,) = await store.claim_tasks(1, lease_s=60, now=NOW)
    return lease


async def known(store: Store, task_id: str) -> Task:
    """Return a task that must exist."""
    task = await store.task(task_id)
    assert task is not None
    return task


def kinds(outcomes: Sequence[object]) -> list[type]:
    """Return the types of what `asyncio.gather` gave."""
    return [type(outcome) for outcome in outcomes]


class StoreContract:
    """Every method of `contracts.Store`, alone, repeated, late and in races."""

    pytestmark = pytest.mark.asyncio

    @pytest.fixture
    async def store(self) -> AsyncIterator[Store]:
        raise NotImplementedError("override the fixture `store` with an open, empty store")
        yield  # noqa: PT022 - makes it the generator that overriding ones are

    # -- T1

    async def test_a_reservation_holds_its_task_until_the_money_is_there(
        self, store: Store
    ) -> None:
        task = await reserved(store)
        assert (task.status, task.payment.state) == (TaskStatus.HELD, PaymentState.RESERVED)
        assert task.payment.authorization == authorization()
        assert task.payment.payer == PAYER
        assert task.payment.search_from_block == 7
        assert task.payment.paid_tx is None
        assert await store.find_claim(key_of(authorization())) == task == await store.task(task.id)
        assert await store.open_payments() == [task.payment]
        assert await store.claim_tasks(9, lease_s=60, now=NOW + 10**6) == []

    async def test_of_fifty_at_once_one_reserves_a_key(self, store: Store) -> None:
        signed = authorization()
        outcomes = await asyncio.gather(
            *(store.reserve(new_task(), signed, key_of(signed), 0) for _ in range(50))
        )
        assert sum(outcome is not None for outcome in outcomes) == 1
        assert await store.counts() == {"tasks": {"held": 1}, "payments": {"reserved": 1}}

    async def test_a_nonce_is_the_payers_own(self, store: Store) -> None:
        for sender in (PAYER, WALLET):
            signed = authorization(1, sender)
            assert await store.reserve(new_task(), signed, key_of(signed), 0)

    async def test_nothing_of_a_refused_reservation_remains(self, store: Store) -> None:
        await reserved(store, 1, id="same")
        other = authorization(2)
        with pytest.raises(Exception, match=r"(?i)unique"):
            await store.reserve(new_task(id="same"), other, key_of(other), 0)
        assert await store.find_claim(key_of(other)) is None
        assert len(await store.open_payments()) == 1

    async def test_an_unknown_key_is_nobodys(self, store: Store) -> None:
        assert await store.find_claim("auth:nobody") is None

    # -- T1'

    async def test_a_transfer_pays_at_once(self, store: Store) -> None:
        task = await store.accept_direct(new_task(), tx_hash(1), [transfer(units=30_000)], None)
        assert (task.status, task.payment.state) == (TaskStatus.QUEUED, PaymentState.SETTLED)
        assert (task.payment.paid_tx, task.payment.paid_units) == (tx_hash(1), 30_000)
        assert await store.find_claim(f"tx:{tx_hash(1)}") == task
        assert await store.open_payments() == []

    async def test_of_fifty_at_once_one_is_paid_by_a_transaction(self, store: Store) -> None:
        outcomes = await asyncio.gather(*(queued(store) for _ in range(50)), return_exceptions=True)
        assert kinds(outcomes).count(Task) == 1
        assert kinds(outcomes).count(TxAlreadyUsed) == 49
        assert await store.counts() == {"tasks": {"queued": 1}, "payments": {"settled": 1}}

    async def test_a_settlements_transfer_pays_nothing_else(self, store: Store) -> None:
        await reserved(store, 1)
        used = transfer(key=key_of(authorization(1)))
        with pytest.raises(TxAlreadyUsed):
            await store.accept_direct(new_task(), tx_hash(1), [used], None)
        assert (await store.counts())["tasks"] == {"held": 1}

    async def test_an_authorization_of_a_released_payment_stays_claimed(self, store: Store) -> None:
        task = await reserved(store, 1)
        await store.release(task.payment.id, now=NOW)
        assert await store.reserve(new_task(), authorization(), key_of(authorization()), 0) is None

    async def test_a_transfer_used_directly_takes_its_authorization_with_it(
        self, store: Store
    ) -> None:
        signed = authorization(1)
        paid = transfer(key=key_of(signed))
        task = await store.accept_direct(new_task(), tx_hash(1), [paid], None)
        assert await store.reserve(new_task(), signed, key_of(signed), 0) is None
        assert await store.find_claim(key_of(signed)) == task

    async def test_the_first_free_transfer_that_suffices_is_used(self, store: Store) -> None:
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

    async def test_small_transfers_do_not_add_up(self, store: Store) -> None:
        transfers = [transfer(index=index, units=PRICE - 1) for index in range(3)]
        with pytest.raises(InsufficientPayment):
            await store.accept_direct(new_task(), tx_hash(1), transfers, None)
        assert await store.find_claim(f"tx:{tx_hash(1)}") is None
        await queued(store, 1)

    async def test_a_used_transaction_is_used_however_many_transfers_it_has(
        self, store: Store
    ) -> None:
        transfers = [transfer(index=index) for index in range(2)]
        await store.accept_direct(new_task(), tx_hash(1), transfers, None)
        with pytest.raises(TxAlreadyUsed):
            await store.accept_direct(new_task(), tx_hash(1), transfers[1:], None)

    async def test_used_is_said_before_insufficient(self, store: Store) -> None:
        await queued(store, 1)
        with pytest.raises(TxAlreadyUsed):
            await store.accept_direct(new_task(), tx_hash(1), [transfer(units=1)], None)

    async def test_two_transactions_pay_two_tasks(self, store: Store) -> None:
        first, second = await asyncio.gather(queued(store, 1), queued(store, 2))
        assert first.id != second.id
        assert (await store.counts())["payments"] == {"settled": 2}

    async def test_one_transaction_settles_many_authorizations(self, store: Store) -> None:
        for nonce in (1, 2):
            task = await reserved(store, nonce)
            assert await store.settle(task.payment.id, transfer(9, index=nonce), now=NOW)

    async def test_one_transfer_never_settles_two(self, store: Store) -> None:
        first, second = await reserved(store, 1), await reserved(store, 2)
        assert await store.settle(first.payment.id, transfer(), now=NOW)
        with pytest.raises(Exception, match=r"(?i)unique"):
            await store.settle(second.payment.id, transfer(), now=NOW)
        assert (await known(store, second.id)).payment.state is PaymentState.RESERVED

    # -- idempotency

    async def test_an_idempotency_key_repeats_its_task(self, store: Store) -> None:
        task = new_task()
        first = await store.accept_direct(task, tx_hash(1), [transfer(1)], "key")
        again = attrs.evolve(task, id="another")
        assert await store.accept_direct(again, tx_hash(1), [transfer(1)], "key") == first
        assert await store.find_idempotent("key") == first
        assert await store.find_idempotent("other") is None

    async def test_an_idempotency_key_means_one_request(self, store: Store) -> None:
        await store.accept_direct(new_task(), tx_hash(1), [transfer(1)], "key")
        other = new_task(request_hash="other")
        with pytest.raises(IdempotencyConflict):
            await store.accept_direct(other, tx_hash(2), [transfer(2)], "key")
        assert await store.find_claim(f"tx:{tx_hash(2)}") is None

    async def test_fifty_repeats_at_once_make_one_task(self, store: Store) -> None:
        outcomes = await asyncio.gather(
            *(store.accept_direct(new_task(), tx_hash(1), [transfer(1)], "key") for _ in range(50))
        )
        assert len({task.id for task in outcomes}) == 1

    async def test_a_refused_payment_leaves_its_idempotency_key_free(self, store: Store) -> None:
        with pytest.raises(InsufficientPayment):
            await store.accept_direct(new_task(), tx_hash(1), [transfer(units=1)], "key")
        await store.accept_direct(new_task(), tx_hash(2), [transfer(2)], "key")

    # -- T2 and the journal

    async def test_a_nonce_is_used_up_with_the_transaction_that_has_it(self, store: Store) -> None:
        task = await reserved(store)
        assert await store.next_nonce(SIGNER, 3) == 3
        assert await store.next_nonce(SIGNER, 3) == 3  # not used: signing failed
        transaction = signed_transaction(3)
        await store.begin_settling(task.payment.id, transaction, now=NOW)
        assert await store.next_nonce(SIGNER, 3) == 4
        assert await store.unmined_of(task.payment.id) == transaction
        assert (await known(store, task.id)).payment.state is PaymentState.SETTLING

    async def test_the_next_nonce_is_never_below_the_chains(self, store: Store) -> None:
        assert await store.next_nonce(SIGNER, 5) == 5
        assert await store.next_nonce(SIGNER, 2) == 5
        assert await store.next_nonce(SIGNER, 8) == 8
        assert await store.next_nonce(WALLET, 0) == 0

    async def test_a_taken_nonce_is_refused_and_nothing_is_written(self, store: Store) -> None:
        await settling(store, 1)
        task = await reserved(store, 2)
        with pytest.raises(RuntimeError):
            await store.begin_settling(task.payment.id, signed_transaction(0, 200), now=NOW)
        assert await store.unmined_of(task.payment.id) is None
        assert (await known(store, task.id)).payment.state is PaymentState.RESERVED

    async def test_a_nonce_never_asked_for_is_refused(self, store: Store) -> None:
        task = await reserved(store)
        with pytest.raises(RuntimeError):
            await store.begin_settling(task.payment.id, signed_transaction(0), now=NOW)

    async def test_of_fifty_at_once_one_gets_a_nonce(self, store: Store) -> None:
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

    async def test_a_closed_payment_is_not_settled_again(self, store: Store) -> None:
        task = await reserved(store)
        await store.release(task.payment.id, now=NOW)
        await store.next_nonce(SIGNER, 0)
        for transaction in (None, signed_transaction(0)):
            with pytest.raises(RuntimeError):
                await store.begin_settling(task.payment.id, transaction, now=NOW)
        assert await store.next_nonce(SIGNER, 0) == 0
        assert await store.unmined(SIGNER) == []

    async def test_somebody_else_may_send_for_us(self, store: Store) -> None:
        task = await reserved(store)
        await store.begin_settling(task.payment.id, None, now=NOW)
        assert (await known(store, task.id)).payment.state is PaymentState.SETTLING
        assert await store.unmined_of(task.payment.id) is None

    async def test_the_dearest_of_one_nonce_is_the_one_to_send(self, store: Store) -> None:
        task = await settling(store)
        dearer = signed_transaction(0, 150)
        await store.add_replacement(task.payment.id, dearer)
        assert await store.unmined_of(task.payment.id) == dearer
        ((payment, transaction),) = await store.unmined(SIGNER)
        assert (payment.id, transaction) == (task.payment.id, dearer)

    async def test_what_is_unmined_is_listed_by_nonce(self, store: Store) -> None:
        tasks = [await settling(store, nonce) for nonce in (1, 2, 3)]
        await store.mark_mined(SIGNER, 1)
        listed = await store.unmined(SIGNER)
        assert [(payment.id, sent.nonce) for payment, sent in listed] == [
            (tasks[1].payment.id, 1),
            (tasks[2].payment.id, 2),
        ]
        assert await store.unmined(WALLET) == []
        assert await store.unmined_of(tasks[0].payment.id) is None

    async def test_a_payment_whose_nonce_another_used_gets_a_second_one(self, store: Store) -> None:
        task = await settling(store)
        await store.mark_mined(SIGNER, 1)
        nonce = await store.next_nonce(SIGNER, 1)
        await store.begin_settling(task.payment.id, signed_transaction(nonce), now=NOW)
        assert await store.unmined_of(task.payment.id) == signed_transaction(1)

    # -- T3 and TR

    @pytest.mark.parametrize("prepare", [reserved, settling])
    async def test_settling_queues_the_task_once(self, store: Store, prepare: Any) -> None:
        task = await prepare(store)
        assert await store.settle(task.payment.id, transfer(5, index=3), now=NOW + 1)
        assert not await store.settle(task.payment.id, transfer(6), now=NOW + 2)
        assert not await store.release(task.payment.id, now=NOW + 2)
        after = await known(store, task.id)
        assert (after.status, after.payment.state) == (TaskStatus.QUEUED, PaymentState.SETTLED)
        assert (after.payment.paid_tx, after.payment.paid_units) == (tx_hash(5), PRICE)
        assert len(await store.claim_tasks(9, lease_s=60, now=NOW + 1)) == 1

    @pytest.mark.parametrize("prepare", [reserved, settling])
    async def test_a_release_drops_the_task_once(self, store: Store, prepare: Any) -> None:
        task = await prepare(store)
        assert await store.release(task.payment.id, now=NOW + 1)
        assert not await store.release(task.payment.id, now=NOW + 2)
        assert not await store.settle(task.payment.id, transfer(), now=NOW + 2)
        after = await known(store, task.id)
        assert (after.status, after.payment.state) == (TaskStatus.DROPPED, PaymentState.RELEASED)
        assert (after.code, after.completed_at) == ("PAYMENT_NOT_SETTLED", NOW + 1)
        assert after.is_done
        assert await store.claim_tasks(9, lease_s=60, now=NOW + 10**6) == []
        assert await store.open_payments() == []

    async def test_a_settlement_and_a_release_at_once_have_one_winner(self, store: Store) -> None:
        task = await reserved(store)
        outcomes = await asyncio.gather(
            store.settle(task.payment.id, transfer(), now=NOW),
            store.release(task.payment.id, now=NOW),
        )
        assert sorted(outcomes) == [False, True]

    async def test_a_transfer_below_the_price_never_settles(self, store: Store) -> None:
        task = await reserved(store)
        with pytest.raises(Exception, match=r"(?i)check"):
            await store.settle(task.payment.id, transfer(units=PRICE - 1), now=NOW)
        assert (await known(store, task.id)).status is TaskStatus.HELD

    async def test_a_direct_payment_is_closed_from_the_start(self, store: Store) -> None:
        task = await queued(store)
        assert not await store.release(task.payment.id, now=NOW)
        assert not await store.settle(task.payment.id, transfer(8), now=NOW)

    async def test_open_payments_come_oldest_first(self, store: Store) -> None:
        tasks = [await reserved(store, nonce) for nonce in (3, 1, 2)]
        await store.release(tasks[1].payment.id, now=NOW)
        found: list[Payment] = await store.open_payments()
        assert [payment.id for payment in found] == [tasks[0].payment.id, tasks[2].payment.id]

    # -- T4

    async def test_a_claim_hands_out_everything_a_provider_needs(self, store: Store) -> None:
        request = GenerationRequest(
            prompt="a boat",
            aspect_ratio="1:1",
            attachment=Attachment(name="a.pdf", data=b"%PDF"),
        )
        lease = await leased(store, request=request)
        assert (lease.slug, lease.request, lease.attempt) == ("picture", request, 1)
        assert lease.until == NOW + 60
        task = await known(store, lease.task_id)
        assert (task.status, task.attempt, task.started_at) == (TaskStatus.PROCESSING, 1, NOW)

    async def test_the_longest_due_is_claimed_first(self, store: Store) -> None:
        tasks = [await queued(store, tx, created_at=NOW - tx) for tx in (1, 3, 2)]
        (first,) = await store.claim_tasks(1, lease_s=60, now=NOW)
        (second,) = await store.claim_tasks(1, lease_s=60, now=NOW)
        assert [first.task_id, second.task_id] == [tasks[1].id, tasks[2].id]

    async def test_a_task_is_claimed_once_however_many_ask(self, store: Store) -> None:
        for tx in range(1, 11):
            await queued(store, tx)
        rounds = await asyncio.gather(
            *(store.claim_tasks(3, lease_s=60, now=NOW) for _ in range(20))
        )
        leases = [lease for leases in rounds for lease in leases]
        assert len(leases) == len({lease.task_id for lease in leases}) == 10
        assert len({lease.token for lease in leases}) == 10
        assert max(map(len, rounds)) <= 3

    async def test_a_lease_that_ended_is_handed_out_again_and_counts(self, store: Store) -> None:
        first = await leased(store)
        assert await store.claim_tasks(1, lease_s=60, now=NOW + 59.9) == []
        (second,) = await store.claim_tasks(1, lease_s=60, now=NOW + 60)
        assert (second.task_id, second.attempt) == (first.task_id, 2)
        assert second.token != first.token
        assert (await known(store, first.task_id)).started_at == NOW

    async def test_a_prolonged_lease_is_not_handed_out(self, store: Store) -> None:
        lease = await leased(store)
        assert await store.extend(lease, until=NOW + 120, progress=0.5)
        assert await store.extend(lease, until=NOW + 120, progress=None)
        assert await store.claim_tasks(1, lease_s=60, now=NOW + 119) == []
        assert (await known(store, lease.task_id)).progress == 0.5

    async def test_at_a_start_every_leased_task_is_due(self, store: Store) -> None:
        lease = await leased(store)
        await store.retry(
            await leased(store, 2), due_at=NOW + 50, costs_attempt=True
        )  # waits, held by nobody
        assert await store.recover_leases(now=NOW + 1) == 1
        (again,) = await store.claim_tasks(9, lease_s=60, now=NOW + 1)
        assert (again.task_id, again.attempt) == (lease.task_id, 2)
        assert not await store.complete(lease, RESULT, expires_at=NOW + 9, now=NOW + 1)

    async def test_the_next_due_is_the_earliest_of_what_waits(self, store: Store) -> None:
        assert await store.next_due() is None
        await reserved(store)
        assert await store.next_due() is None
        lease = await leased(store)
        assert await store.next_due() == NOW + 60
        await store.retry(lease, due_at=NOW + 5, costs_attempt=True)
        assert await store.next_due() == NOW + 5
        (lease,) = await store.claim_tasks(1, lease_s=60, now=NOW + 5)
        await store.complete(lease, RESULT, expires_at=NOW + 99, now=NOW + 6)
        assert await store.next_due() is None

    # -- T5

    async def test_a_result_is_seen_once_it_is_written(self, store: Store) -> None:
        lease = await leased(store)
        assert await store.complete(lease, RESULT, expires_at=NOW + 99, now=NOW + 1)
        task = await known(store, lease.task_id)
        assert (task.status, task.result, task.is_done) == (TaskStatus.COMPLETED, RESULT, True)
        assert (task.completed_at, task.expires_at) == (NOW + 1, NOW + 99)
        assert (task.refund, task.payment.state) == (None, PaymentState.SETTLED)

    async def test_a_failure_is_money_owed(self, store: Store) -> None:
        await store.accept_direct(new_task(), tx_hash(1), [transfer(units=30_000)], None)
        (lease,) = await store.claim_tasks(1, lease_s=60, now=NOW)
        assert await store.fail(lease, details="timed_out", error="Too slow.", now=NOW + 1)
        task = await known(store, lease.task_id)
        assert (task.status, task.code) == (TaskStatus.FAILED, "GENERATION_FAILED")
        assert (task.error, task.details) == ("Too slow.", "timed_out")
        assert task.payment.state is PaymentState.REFUND_DUE
        assert task.refund is not None
        assert (task.refund.amount_units, task.refund.tx_hash) == (30_000, None)  # what was paid

    async def test_an_end_is_final(self, store: Store) -> None:
        lease = await leased(store)
        await store.complete(lease, RESULT, expires_at=NOW + 99, now=NOW)
        assert not await store.fail(lease, details="x", error="x", now=NOW)
        assert not await store.complete(lease, RESULT, expires_at=NOW + 99, now=NOW)
        assert not await store.retry(lease, due_at=NOW, costs_attempt=True)
        assert not await store.extend(lease, until=NOW + 120, progress=0.1)
        assert await store.recover_leases(now=NOW) == 0
        assert await store.claim_tasks(1, lease_s=60, now=NOW + 10**6) == []
        task = await known(store, lease.task_id)
        assert (task.status, task.refund) == (TaskStatus.COMPLETED, None)

    async def test_who_lost_the_lease_changes_nothing(self, store: Store) -> None:
        lost = await leased(store)
        (held,) = await store.claim_tasks(1, lease_s=60, now=NOW + 61)
        assert not await store.complete(lost, RESULT, expires_at=NOW + 99, now=NOW + 62)
        assert not await store.fail(lost, details="x", error="x", now=NOW + 62)
        assert not await store.retry(lost, due_at=NOW + 62, costs_attempt=False)
        assert not await store.extend(lost, until=NOW + 999, progress=0.9)
        task = await known(store, lost.task_id)
        assert (task.status, task.attempt, task.progress) == (TaskStatus.PROCESSING, 2, None)
        assert await store.complete(held, RESULT, expires_at=NOW + 99, now=NOW + 63)

    async def test_a_result_and_a_failure_at_once_have_one_winner(self, store: Store) -> None:
        lease = await leased(store)
        outcomes = await asyncio.gather(
            store.fail(lease, details="x", error="x", now=NOW),
            store.complete(lease, RESULT, expires_at=NOW + 99, now=NOW),
        )
        assert sorted(outcomes) == [False, True]

    @pytest.mark.parametrize(("costs_attempt", "attempt"), [(True, 2), (False, 1)])
    async def test_a_retry_waits_and_may_cost_an_attempt(
        self,
        store: Store,
        costs_attempt: bool,  # noqa: FBT001 - a parameter of the test
        attempt: int,
    ) -> None:
        lease = await leased(store)
        await store.extend(lease, until=NOW + 60, progress=0.5)
        assert await store.retry(lease, due_at=NOW + 5, costs_attempt=costs_attempt)
        task = await known(store, lease.task_id)
        assert (task.status, task.progress) == (TaskStatus.PROCESSING, None)
        assert await store.claim_tasks(1, lease_s=60, now=NOW + 4.9) == []
        assert not await store.complete(lease, RESULT, expires_at=NOW + 99, now=NOW)
        (again,) = await store.claim_tasks(1, lease_s=60, now=NOW + 5)
        assert again.attempt == attempt

    # -- retention

    async def test_outputs_are_listed_until_they_are_forgotten(self, store: Store) -> None:
        for tx, expires_at in ((1, NOW + 30), (2, NOW + 10), (3, NOW + 20)):
            lease = await leased(store, tx, id=f"kept-{tx}")
            await store.complete(lease, RESULT, expires_at=expires_at, now=NOW)
        assert await store.expired_outputs(now=NOW + 9, limit=9) == []
        found = await store.expired_outputs(now=NOW + 20, limit=9)
        assert found == [("kept-2", list(RESULT.outputs)), ("kept-3", list(RESULT.outputs))]
        assert len(await store.expired_outputs(now=NOW + 30, limit=1)) == 1
        await store.forget_outputs(["kept-2", "kept-3"])
        assert [task_id for task_id, _ in await store.expired_outputs(now=NOW + 99, limit=9)] == [
            "kept-1"
        ]
        task = await known(store, "kept-2")
        assert (task.outputs_gone, task.status) == (True, TaskStatus.COMPLETED)
        assert not (await known(store, "kept-1")).outputs_gone

    # -- the rest

    async def test_what_is_there_is_counted(self, store: Store) -> None:
        assert await store.counts() == {"tasks": {}, "payments": {}}
        assert await store.queue_depth() == {}
        await reserved(store, 1)
        await settling(store, 2)
        lease = await leased(store, 1)
        await store.fail(lease, details="x", error="x", now=NOW)
        await leased(store, 2)
        await queued(store, 3)
        assert await store.counts() == {
            "tasks": {"held": 2, "failed": 1, "processing": 1, "queued": 1},
            "payments": {"reserved": 1, "settling": 1, "refund_due": 1, "settled": 2},
        }
        assert await store.queue_depth() == {"held": 2, "queued": 1, "processing": 1}

    async def test_an_unknown_task_is_none(self, store: Store) -> None:
        assert await store.task("nothing") is None

    async def test_it_answers(self, store: Store) -> None:
        await store.ping()

    async def test_a_stored_value_is_made_once(self, store: Store) -> None:
        assert await store.known_meta("secret") is None
        made = itertools.count()
        values = await asyncio.gather(
            *(store.meta("secret", lambda: f"made {next(made)}") for _ in range(50))
        )
        assert len(set(values)) == 1
        assert await store.known_meta("secret") == values[0]
        assert await store.meta("secret", lambda: "another") == values[0]

    async def test_login_attempts_are_counted_in_a_moving_window(self, store: Store) -> None:
        async def attempt(at: float, address: str = "a") -> float:
            return await store.count_attempt(address, limit=3, window_s=100, now=NOW + at)

        assert [await attempt(at) for at in (0, 40, 50)] == [0, 0, 0]
        assert await attempt(60) == 40
        assert await attempt(60, "b") == 0
        assert await attempt(99.5) == 0.5
        assert await attempt(100) == 0  # waiting as long as told suffices
        assert await attempt(101) == 39

    async def test_of_fifty_logins_at_once_no_more_than_the_limit_pass(self, store: Store) -> None:
        waits = await asyncio.gather(
            *(store.count_attempt("a", limit=5, window_s=300, now=NOW) for _ in range(50))
        )
        assert sum(wait == 0 for wait in waits) == 5
