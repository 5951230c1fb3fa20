"""Contract of every store: records of payers with open payments and failed settlements."""

import asyncio
from typing import Any

import attrs
import pytest

from gateway.contracts import SignedTransaction
from gateway.contracts.store import (
    DeploymentLimit,
    FailedSettlement,
    OpenPayments,
    PayerBusy,
    ReserveLimits,
)
from gateway.domain import Attachment, GenerationRequest, Task
from gateway.errors import ExecutionError, PaymentRequired
from gateway.store import SqlStore
from gateway_testing.facts import (
    NOW,
    PAYER,
    PRICE,
    WALLET,
    authorization,
    key_of,
    kinds,
    new_task,
    paying,
    receipt_of,
    reserved,
)

_ROOMY = ReserveLimits(held_file_bytes=10**9, most_open=50, balance_units=50 * PRICE)
_FILE = GenerationRequest(attachment=Attachment(name="a.txt", data=b"a" * 1000))


async def _reserve(store: SqlStore, nonce: int, limits: ReserveLimits, sender: str = PAYER) -> Task:
    signed = authorization(nonce, sender)
    task = await store.reserve(new_task(), signed, key_of(signed), 0, None, limits)
    assert task is not None
    return task


def _sent(nonce: int = 0, **changes: Any) -> SignedTransaction:
    sent = SignedTransaction(
        signer=WALLET,
        nonce=nonce,
        tx_hash=f"0x{nonce:064x}",
        raw=b"raw",
        max_fee_wei=10**9,
        max_priority_wei=10**6,
        sent_at=NOW,
    )
    return attrs.evolve(sent, **changes)


def _failed(sent: SignedTransaction, failure: str = "drained") -> FailedSettlement:
    return FailedSettlement(
        payer=PAYER, tx_hash=sent.tx_hash, at=NOW, failure=failure, fee_wei=7_000
    )


async def _mined(store: SqlStore, task: Task, nonce: int = 0) -> SignedTransaction:
    sent = _sent(nonce)
    await store.begin_settling(task.payment.id, sent, now=NOW)
    await store.mark_mined(WALLET, nonce + 1)
    return sent


class PayersContract:
    """Limits in `reserve`, and failures that bar a payer until lifted or forgiven."""

    async def test_of_fifty_at_once_a_payer_has_as_many_open_as_he_may(
        self, store: SqlStore
    ) -> None:
        three = attrs.evolve(_ROOMY, most_open=3)
        outcomes = await asyncio.gather(
            *(_reserve(store, nonce, three) for nonce in range(50)), return_exceptions=True
        )
        assert kinds(outcomes).count(Task) == 3
        assert kinds(outcomes).count(PayerBusy) == 47
        assert await store.payers.open_of(PAYER, now=NOW) == OpenPayments(
            count=3, units=3 * PRICE, settled=0
        )

    async def test_open_payments_are_what_the_balance_covers_together(
        self, store: SqlStore
    ) -> None:
        two = attrs.evolve(_ROOMY, balance_units=3 * PRICE - 1)
        await _reserve(store, 1, two)
        await _reserve(store, 2, two)
        with pytest.raises(PayerBusy):
            await _reserve(store, 3, two)
        await _reserve(store, 3, two, sender=WALLET)

    async def test_a_payment_that_is_closed_is_not_open(self, store: SqlStore) -> None:
        one = attrs.evolve(_ROOMY, most_open=1)
        first = await _reserve(store, 1, one)
        await store.release(first.payment.id, now=NOW)
        second = await _reserve(store, 2, one)
        await store.settle(second.payment.id, paying(second), now=NOW)
        await _reserve(store, 3, one)
        known = await store.payers.open_of(PAYER, now=NOW)
        assert (known.count, known.settled) == (1, 1)

    async def test_a_payment_that_is_mined_already_needs_no_limit(self, store: SqlStore) -> None:
        await _reserve(store, 1, attrs.evolve(_ROOMY, most_open=1))
        await _reserve(store, 2, attrs.evolve(_ROOMY, most_open=None, balance_units=0))
        signed, paid = authorization(3), ReserveLimits(held_file_bytes=0)
        document = new_task(request=_FILE)
        assert await store.reserve(document, signed, key_of(signed), 0, None, paid)

    async def test_what_is_never_mined_shuts_its_payer_out_for_an_hour_only(
        self, store: SqlStore
    ) -> None:
        """The key was replaced: settlements of the new key do not decide an old payment."""
        one = attrs.evolve(_ROOMY, most_open=1)
        task = await _reserve(store, 1, one)
        await store.begin_settling(task.payment.id, _sent(), now=NOW)
        await store.release(task.payment.id, now=NOW)
        assert (await store.payers.open_of(PAYER, now=NOW + 3599)).count == 1
        with pytest.raises(PayerBusy):
            await _reserve(store, 2, one)
        assert (await store.payers.open_of(PAYER, now=NOW + 3601)).count == 0
        signed, late = authorization(3), attrs.evolve(new_task(), created_at=NOW + 3601)
        assert await store.reserve(late, signed, key_of(signed), 0, None, one)

    async def test_held_files_have_a_cap(self, store: SqlStore) -> None:
        limits = attrs.evolve(_ROOMY, held_file_bytes=1_999)
        signed = [authorization(nonce) for nonce in range(3)]
        task = new_task(request=_FILE)
        held = await store.reserve(task, signed[0], key_of(signed[0]), 0, None, limits)
        assert held is not None
        with pytest.raises(ExecutionError, match="Too many documents wait"):
            await store.reserve(
                new_task(request=_FILE), signed[1], key_of(signed[1]), 0, None, limits
            )
        await _reserve(store, 2, limits)  # without a file
        await store.release(held.payment.id, now=NOW)
        again = new_task(request=_FILE)
        assert await store.reserve(again, signed[1], key_of(signed[1]), 0, None, limits)

    async def test_of_many_new_wallets_at_once_only_a_days_number_is_deployed(
        self, store: SqlStore
    ) -> None:
        limits = attrs.evolve(_ROOMY, deployments=DeploymentLimit(most=3, since=NOW - 1))
        outcomes = await asyncio.gather(
            *(_reserve(store, one, limits, f"0x{one:040x}") for one in range(20)),
            return_exceptions=True,
        )
        assert kinds(outcomes).count(Task) == 3
        assert kinds(outcomes).count(PaymentRequired) == 17
        # Others may buy, and so may new wallets of the next day.
        await _reserve(store, 30, _ROOMY)
        tomorrow = attrs.evolve(_ROOMY, deployments=DeploymentLimit(most=3, since=NOW))
        await _reserve(store, 31, tomorrow, WALLET)

    async def test_a_deployment_that_was_released_does_not_count(self, store: SqlStore) -> None:
        limits = attrs.evolve(_ROOMY, deployments=DeploymentLimit(most=1, since=NOW - 1))
        first = await _reserve(store, 1, limits)
        with pytest.raises(PaymentRequired, match="deploys no more new smart wallets today"):
            await _reserve(store, 2, limits, WALLET)
        await store.release(first.payment.id, now=NOW)
        await _reserve(store, 2, limits, WALLET)

    async def test_a_failure_bars_its_payer_until_its_time_is_over(self, store: SqlStore) -> None:
        sent = await _mined(store, await reserved(store, 1))
        assert [transaction for _, transaction in await store.payers.unjudged()] == [sent]
        await store.payers.judge(sent, _failed(sent))
        assert await store.payers.unjudged() == []
        assert await store.payers.failure_of(PAYER, since=NOW - 1) == _failed(sent)
        assert await store.payers.failures(since=NOW - 1) == [_failed(sent)]
        assert await store.payers.failure_of(PAYER, since=NOW) is None
        assert await store.payers.failure_of(WALLET, since=0) is None

    async def test_a_failure_stays_where_the_payment_is_released(self, store: SqlStore) -> None:
        task = await reserved(store, 1)
        sent = await _mined(store, task)
        await store.payers.judge(sent, _failed(sent))
        await store.release(task.payment.id, now=NOW)
        assert await store.payers.failure_of(PAYER, since=0) == _failed(sent)

    async def test_money_that_came_after_all_ends_it(self, store: SqlStore) -> None:
        task = await reserved(store, 1)
        sent = await _mined(store, task)
        await store.payers.judge(sent, _failed(sent))
        await store.settle(task.payment.id, paying(task), now=NOW)
        assert await store.payers.failure_of(PAYER, since=0) is None

    async def test_the_operator_lifts_what_failed_so_far(self, store: SqlStore) -> None:
        sent = await _mined(store, await reserved(store, 1))
        await store.payers.judge(sent, _failed(sent))
        await store.payers.lift(PAYER.upper().replace("0X", "0x"), note="ours", now=NOW)
        assert await store.payers.failure_of(PAYER, since=0) is None
        later = await _mined(store, await reserved(store, 2), nonce=1)
        again = attrs.evolve(_failed(later), at=NOW + 1)
        await store.payers.judge(later, again)
        assert await store.payers.failure_of(PAYER, since=0) == again

    async def test_a_failure_whose_cause_is_not_shown_bars_nobody(self, store: SqlStore) -> None:
        sent = await _mined(store, await reserved(store, 1))
        await store.payers.judge(sent, _failed(sent, "unexplained"))
        assert await store.payers.failure_of(PAYER, since=0) is None

    async def test_gas_that_no_cause_explains_is_summed(self, store: SqlStore) -> None:
        for nonce, failure in enumerate(("wallet", "drained", "spent", "late", "unexplained")):
            sent = await _mined(store, await reserved(store, nonce), nonce)
            await store.payers.judge(sent, _failed(sent, failure))
        assert await store.failed_gas(since=NOW - 1) == 14_000
        assert await store.failed_gas(since=NOW) == 0

    async def test_what_became_of_a_payment_says_nothing_of_our_own_transaction(
        self, store: SqlStore
    ) -> None:
        """Another transaction may have paid, and the gateway's own still used gas."""
        task = await reserved(store, 1)
        sent = await _mined(store, task)
        await store.settle(task.payment.id, paying(task), now=NOW)
        assert [transaction for _, transaction in await store.payers.unjudged()] == [sent]
        await store.payers.judge(sent, _failed(sent, "wallet"))
        assert await store.failed_gas(since=NOW - 1) == 7_000
        assert await store.payers.failure_of(PAYER, since=0) is None

    async def test_a_transaction_that_succeeded_needs_no_look(self, store: SqlStore) -> None:
        task = await reserved(store, 1)
        sent = await _mined(store, task)
        await store.note_mined(receipt_of(sent))
        assert await store.payers.unjudged() == []

    async def test_a_purchase_that_was_checked_before_the_judgement_is_refused_after_it(
        self, store: SqlStore
    ) -> None:
        """The failed payment was open until then, so the payer is never free."""
        task = await _reserve(store, 1, _ROOMY)
        sent = await _mined(store, task)
        await store.release(task.payment.id, now=NOW)
        checked = attrs.evolve(_ROOMY, most_open=1, barred_since=NOW - 1)
        with pytest.raises(PayerBusy):
            await _reserve(store, 2, checked)
        await store.payers.judge(sent, _failed(sent))
        with pytest.raises(PayerBusy):
            await _reserve(store, 2, checked)
        await store.payers.lift(PAYER, note="ours", now=NOW)
        assert await _reserve(store, 2, checked)

    async def test_every_version_of_a_nonce_is_judged_with_one(self, store: SqlStore) -> None:
        task = await reserved(store, 1)
        first = _sent()
        dearer = _sent(tx_hash="0x" + "dd" * 32, max_fee_wei=2 * 10**9)
        await store.begin_settling(task.payment.id, first, now=NOW)
        await store.add_replacement(task.payment.id, dearer)
        await store.mark_mined(WALLET, 1)
        assert len(await store.payers.unjudged()) == 2
        await store.payers.judge(dearer, _failed(dearer))
        assert await store.payers.unjudged() == []
