"""Payments by other methods in the database: each step, each illegal change, and races."""

import asyncio
import sqlite3

import attrs
import pytest

from gateway import EventReader
from gateway.contracts.payment_methods import MAX_PROOF_BYTES, MethodProof, Refused, Taken
from gateway.domain import Attachment, GenerationRequest, PaymentState, TaskStatus
from gateway.errors import ExecutionError, IdempotencyConflict
from gateway.store import SqliteStore
from gateway_operator.sql import ledger, totals
from gateway_testing.facts import (
    NOW,
    PRICE,
    authorization,
    key_of,
    new_task,
    queued,
    reserved,
)
from gateway_webhooks import queue

PROOF = MethodProof(
    key="serial-1", data=b"\x00signed", value_units=50_000, payer="voucher serial-1"
)
CLAIM = "voucher:serial-1"
TAKEN = Taken("redeemed 1")


async def pay(store, proof=PROOF, key=None, held=10**6, method="voucher", **changes):
    task = new_task(**changes)
    return await store.methods.reserve(task, method, proof, key, held_file_bytes=held)


async def begin(store, task):
    return await store.methods.begin_settling(task.payment.id, now=NOW)


async def close(store, task, answer=TAKEN):
    return await store.methods.close(task.payment.id, answer, now=NOW + 1)


async def opened(store):
    return await store.methods.open_payments()


async def paid(store, **changes):
    task = await pay(store, **changes)
    await begin(store, task)
    await close(store, task)
    return await store.task(task.id)


# -- T1


async def test_a_proof_is_claimed_and_its_task_held_before_anybody_is_asked(store):
    task = await pay(store)
    assert (task.status, task.payment.state) == (TaskStatus.HELD, PaymentState.RESERVED)
    assert (task.payment.method, task.payment.paid_tx) == ("voucher", None)
    assert await store.find_claim(CLAIM) == task == await store.task(task.id)
    (waiting,) = await opened(store)
    assert waiting.method == "voucher"
    assert (waiting.asked.claim, waiting.asked.data) == (CLAIM, PROOF.data)
    assert (waiting.asked.task_id, waiting.asked.reserved_at) == (task.id, NOW)
    assert (waiting.asked.value_units, waiting.asked.price_units) == (50_000, PRICE)


async def test_what_only_the_chain_knows_and_what_only_a_method_knows_are_kept_apart(store):
    by_voucher, by_chain = await pay(store), await reserved(store)
    assert [one.id for one in await store.open_payments()] == [by_chain.payment.id]
    assert [one.payment.id for one in await opened(store)] == [by_voucher.payment.id]


async def test_of_fifty_at_once_one_gets_the_claim(store):
    outcomes = await asyncio.gather(*(pay(store) for _ in range(50)))
    assert sum(outcome is not None for outcome in outcomes) == 1
    assert await store.counts() == {"tasks": {"held": 1}, "payments": {"reserved": 1}}


async def test_the_same_key_of_another_method_is_another_claim(store):
    first = await pay(store)
    second = await pay(store, method="coupon")
    assert first is not None
    assert second is not None


async def test_a_claim_is_none_of_the_chains(store):
    signed = authorization()
    name, _, key = key_of(signed).partition(":")
    assert name == "auth"
    assert await pay(store, attrs.evolve(PROOF, key=key)) is not None
    assert await store.reserve(new_task(), signed, key_of(signed), 0) is not None


async def test_a_key_returns_the_task_that_it_bought_and_leaves_the_second_voucher(store):
    first = await pay(store, key="k")
    second = attrs.evolve(PROOF, key="serial-2")
    assert await pay(store, second, key="k") == first
    assert await store.find_claim("voucher:serial-2") is None
    with pytest.raises(IdempotencyConflict):
        await pay(store, second, key="k", request_hash="another")


async def test_a_value_below_the_price_is_never_written(store):
    with pytest.raises(ValueError, match="less than the price"):
        await pay(store, attrs.evolve(PROOF, value_units=PRICE - 1))
    assert await store.find_claim(CLAIM) is None


async def test_held_files_of_all_ways_to_pay_share_their_cap(store):
    document = Attachment(name="a.pdf", data=bytes(600))
    request = GenerationRequest(prompt="a", attachment=document)
    await reserved(store, request=request)
    with pytest.raises(ExecutionError, match="Too many documents wait"):
        await pay(store, held=1_000, request=request)
    assert await pay(store, held=1_200, request=request) is not None


@pytest.mark.parametrize("data", [b"", bytes(MAX_PROOF_BYTES + 1)])
async def test_a_proof_without_bytes_or_with_too_many_is_not_written(store, data):
    with pytest.raises(sqlite3.IntegrityError):
        await pay(store, attrs.evolve(PROOF, data=data))
    assert await store.find_claim(CLAIM) is None


async def test_only_the_very_same_bytes_are_a_repeat(store):
    await pay(store)
    other = attrs.evolve(PROOF, data=b"\x00forged")
    assert await store.methods.is_same_proof("voucher", PROOF)
    assert not await store.methods.is_same_proof("voucher", other)
    assert not await store.methods.is_same_proof("coupon", PROOF)


# -- T2, T3, TR


async def test_money_that_was_taken_queues_the_task_once(store):
    task = await pay(store)
    assert await begin(store, task)
    assert await begin(store, task)
    assert await close(store, task)
    assert not await close(store, task)
    after = await store.task(task.id)
    assert (after.status, after.payment.state) == (TaskStatus.QUEUED, PaymentState.SETTLED)
    assert after.payment.paid_units == 50_000
    assert not await begin(store, task)
    assert await opened(store) == []
    assert len(await store.queue.lease(9, lease_s=60, now=NOW + 9)) == 1


async def test_a_refusal_drops_the_task_and_frees_the_key_but_not_the_claim(store):
    task = await pay(store, key="k")
    await begin(store, task)
    assert await close(store, task, Refused("expired"))
    after = await store.task(task.id)
    assert (after.status, after.payment.state) == (TaskStatus.DROPPED, PaymentState.RELEASED)
    assert await pay(store) is None
    assert await pay(store, attrs.evolve(PROOF, key="serial-2"), key="k") is not None


async def test_an_answer_after_the_first_changes_nothing(store):
    task = await paid(store)
    assert not await close(store, task, Refused("late"))
    assert (await store.task(task.id)).payment.state is PaymentState.SETTLED


@pytest.mark.parametrize("answer", [TAKEN, Refused("no")])
async def test_nobody_can_have_answered_before_t2(store, answer):
    task = await pay(store)
    with pytest.raises(RuntimeError, match="not settling"):
        await close(store, task, answer)
    assert (await store.task(task.id)).payment.state is PaymentState.RESERVED


async def test_the_chains_payments_are_not_settled_by_a_method(store):
    task = await reserved(store)
    assert not await begin(store, task)
    with pytest.raises(RuntimeError, match="not settling"):
        await close(store, task)


# -- refunds


@pytest.mark.parametrize(
    ("named", "recipient"), [("0x" + "d4" * 20, "0x" + "d4" * 20), (None, "0x" + "0" * 40)]
)
async def test_a_failed_task_owes_the_whole_value_and_no_refund_goes_out_by_itself(
    store, named, recipient
):
    task = await paid(store, proof=attrs.evolve(PROOF, refund_to=named))
    (lease,) = await store.queue.lease(1, lease_s=60, now=NOW + 9)
    assert await store.queue.fail(lease, details="x", error="It failed.", now=NOW + 9)
    case = await store.refunds.case(task.id)
    assert (case.amount_units, case.recipient) == (50_000, recipient)
    assert not case.payer_proven


async def test_events_of_a_method_are_of_its_payers_and_not_of_one_for_all(store):
    """Slots and pace of deliveries are per payer: one buyer's slow receiver delays no other."""
    await store.events.set_readers({queue.NAME: EventReader(take=queue.take)}, now=NOW)
    request = GenerationRequest(prompt="a boat", callback_url="https://a.example/hook")
    task = await paid(store, request=request)
    (lease,) = await store.queue.lease(1, lease_s=60, now=NOW + 9)
    await store.queue.fail(lease, details="x", error="It failed.", now=NOW + 9)
    await store.events.take(queue.NAME, queue.take, now=NOW + 9)
    (event,) = await queue.DeliveryQueue(store).due(9, now=NOW + 9)
    assert (event.task_id, event.payer) == (task.id, "voucher:voucher serial-1")


# -- the books


async def test_books_show_the_method_and_no_transaction(store):
    await paid(store)
    direct = await queued(store)
    (sale, other) = await store._short_read(lambda db: ledger.rows(db, NOW - 1, NOW + 99))
    by_flow = {row.flow: row for row in (sale, other)}
    assert by_flow["voucher"].tx_hash is None
    assert (by_flow["voucher"].payer, by_flow["voucher"].units) == ("voucher serial-1", 50_000)
    assert by_flow["direct"].tx_hash == direct.payment.paid_tx
    span = NOW - 1, NOW + 99
    booked = await store._short_read(lambda db: ledger.booked_sales(db, *span, 0, 10**9))
    assert [one.task_id for one in booked] == [direct.id]
    counted = await store._short_read(lambda db: totals.sales_between(db, 0, None))
    assert {one.flow: one.units for one in counted} == {"voucher": 50_000, "direct": PRICE}


# -- refusals of the database itself


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (("UPDATE payments SET state = 'settled', paid_tx = 'x', paid_log_index = 0,"
         " paid_units = 50000"), "before it was settling"),
        ("UPDATE payments SET method = NULL", "never changes"),
        ("UPDATE payments SET method = 'coupon'", "never changes"),
        ("UPDATE method_proofs SET value_units = 1", "never changed"),
        ("UPDATE method_proofs SET claim = 'voucher:x', answer = 'a'", "never changed"),
        ("DELETE FROM method_proofs", "never deleted"),
        ("DELETE FROM claims", "never taken back"),
    ],
)  # fmt: skip
async def test_an_illegal_change_is_aborted(store, sql, message):
    await pay(store)
    with pytest.raises(sqlite3.IntegrityError, match=message):
        await store._write(lambda db: db.execute(sql))


@pytest.mark.parametrize(
    "sql",
    [
        (
            "UPDATE payments SET state = 'settled', paid_tx = 'x', paid_log_index = 0,"
            " paid_units = 60000"
        ),
        (
            "UPDATE payments SET state = 'settled', paid_tx = 'x', paid_log_index = 0,"
            " paid_units = 20000"
        ),
    ],
)
async def test_what_paid_is_exactly_the_proofs_value(store, sql):
    await begin(store, await pay(store))
    with pytest.raises(sqlite3.IntegrityError, match="without its own claim"):
        await store._write(lambda db: db.execute(sql))


async def test_an_answer_is_written_once(store):
    await paid(store)
    with pytest.raises(sqlite3.IntegrityError, match="answered once"):
        await store._write(lambda db: db.execute("UPDATE method_proofs SET answer = 'b'"))


@pytest.mark.parametrize("change", ["state = 'settling'", "payer_proven = 1", "payer = '0x1'"])
async def test_a_method_cannot_begin_otherwise_than_reserved(path, change):
    async with SqliteStore(path) as store:
        await pay(store)
        column, _, worth = change.partition(" = ")
        names = "flow, request_hash, price_units, search_from_block, created_at, updated_at, method"
        values = {"state": "'reserved'", "payer": f"'0x{'0' * 40}'", "payer_proven": "0"}
        values[column] = worth
        sql = (
            f"INSERT INTO payments ({names}, {', '.join(values)}) "
            f"VALUES ('direct', 'h', 1, 0, 1, 1, 'v', {', '.join(values.values())})"
        )
        with pytest.raises(sqlite3.IntegrityError, match="begins reserved"):
            await store._write(lambda db: db.execute(sql))
