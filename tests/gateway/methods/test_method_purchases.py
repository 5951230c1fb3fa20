"""Purchases with proofs that the core cannot read: one proof is one task, or nothing is taken."""

import asyncio

import attrs
import pytest

from tests.cases import each
from tests.conftest import nothing_charged, running
from tests.gateway.methods.tickets import (
    REFUND_TO,
    URL,
    TicketPlugin,
    Tickets,
    bought,
    pay,
    refused,
    soon,
)
from tests.held_checks import first_held


@pytest.fixture
def tickets():
    return Tickets()


@pytest.fixture
async def gateway(settings, provider, clock, tickets):
    async with running(settings, provider, [TicketPlugin(tickets)], now=clock) as gateway:
        soon(gateway)
        yield gateway


async def known(gateway, task_id):
    return await (await gateway.client.get(f"/api/task/{task_id}")).get_json()


# -- one proof, one task


async def test_a_proof_buys_a_picture_and_gets_its_receipt(gateway, tickets, provider):
    answer = await pay(gateway)
    assert answer.headers["Ticket-Receipt"] == "stub of ticket:a"
    task_id = (await answer.get_json())["taskId"]
    done = await gateway.wait(task_id)
    assert done["status"] == "completed"
    assert tickets.ledger == {"ticket:a": task_id}
    paid = done["payment"]
    assert (paid["flow"], paid["transaction"], paid["amount"]) == ("ticket", None, 0.02)
    assert len(provider.requests) == 1


async def test_the_402_names_every_way_to_pay(gateway):
    answer = await gateway.client.post(URL, json={"prompt": "a boat"})
    assert answer.status_code == 402
    assert answer.headers["WWW-Authenticate"] == 'Ticket price="20000"'
    assert "PAYMENT-REQUIRED" in answer.headers
    assert "ticketError" not in await answer.get_json()


async def test_x402_sells_beside_it_and_both_at_once_are_a_400(gateway, chain, payer):
    both = {"X-PAYMENT": payer.header()}
    async with nothing_charged(gateway, chain):
        assert (await pay(gateway, headers=both)).status_code == 400
    alone = await gateway.client.post(URL, json={"prompt": "a boat"}, headers=both)
    assert alone.status_code == 200
    assert "Ticket-Receipt" not in alone.headers


async def test_pages_of_other_sites_may_send_the_header(gateway):
    asked = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
    answer = await gateway.client.options(URL, headers=asked)
    allowed = answer.headers.getlist("Access-Control-Allow-Headers")
    assert "Authorization" in ", ".join(allowed).split(", ")


async def test_the_same_proof_and_request_are_the_same_task(gateway, tickets):
    tasks = await asyncio.gather(*(bought(gateway) for _ in range(10)))
    tickets.is_bad = "ticket_expired"
    assert {*tasks, await bought(gateway)} == {tasks[0]}
    assert len(tickets.ledger) == 1


async def test_a_proof_buys_nothing_else(gateway, tickets, chain):
    await bought(gateway)
    async with nothing_charged(gateway, chain):
        assert await refused(gateway, prompt="another boat") == "payment_already_used"
        assert await refused(gateway, slug="picture", resolution="2K") == "payment_already_used"
        # Other bytes under a known key.
        assert await refused(gateway, "a:20000:forged") == "payment_already_used"
    assert len(tickets.asked) == 1


async def test_of_two_requests_at_once_one_gets_the_proof(gateway, tickets):
    answers = await asyncio.gather(*(pay(gateway, prompt=f"boat {n}") for n in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200, *[402] * 7]
    assert len(tickets.ledger) == 1


# -- before anything is stored


async def test_what_is_no_proof_is_refused_and_nothing_is_written(gateway, tickets, chain):
    async with nothing_charged(gateway, chain):
        assert await refused(gateway, "garbage") == "invalid_payload"
        assert await refused(gateway, "a:19999") == "insufficient_funds"
        tickets.is_bad = "ticket_expired"
        assert await refused(gateway) == "ticket_expired"
    assert tickets.asked == []


@each(
    "mistake",
    [
        {"key": "A b"},
        {"key": "a" * 201},
        {"data": b""},
        {"data": bytes(16_385)},
        {"value_units": 0},
        {"value_units": 2.5},
        {"payer": ""},
        {"payer": "a\x1b[2J"},
        {"refund_to": "0x12"},
        {"refund_to": "0x" + "0" * 40},
    ],
)
async def test_a_methods_own_mistake_takes_nothing(gateway, tickets, chain, mistake):
    tickets.proof = mistake
    async with nothing_charged(gateway, chain):
        assert (await pay(gateway)).status_code == 500
    assert tickets.asked == []


async def test_nothing_is_taken_while_the_endpoint_is_off_sale(gateway, tickets, chain):
    def off(*_):
        from gateway.errors import ExecutionError

        raise ExecutionError("It rests; nothing was charged.")

    gateway.services.payments.check_serving = off
    async with nothing_charged(gateway, chain):
        assert (await pay(gateway)).status_code == 500
    assert tickets.asked == []


# -- Idempotency-Key


async def test_a_second_proof_of_the_payer_under_the_same_key_is_not_used(gateway, tickets):
    tickets.proof = {"payer": "customer 7"}
    first = await bought(gateway, key="my-purchase")
    assert await bought(gateway, "b:20000", key="my-purchase") == first
    assert list(tickets.ledger) == ["ticket:a"]
    conflict = await pay(gateway, "b:20000", key="my-purchase", prompt="another boat")
    assert conflict.status_code == 409


async def test_another_payers_key_is_another_key(gateway):
    assert await bought(gateway, key="k") != await bought(gateway, "b:20000", key="k")


async def test_nobody_learns_of_a_key_without_a_good_proof(gateway, tickets):
    tickets.proof = {"payer": "customer 7"}
    await bought(gateway, key="my-purchase")
    tickets.is_bad = "ticket_forged"
    assert await refused(gateway, "b:20000", key="my-purchase") == "ticket_forged"


# -- the method's results


async def test_a_refusal_is_a_402_with_its_reason_now_and_later(gateway, tickets, provider):
    tickets.refuses = "ticket_stolen"
    assert await refused(gateway, key="k") == "ticket_stolen"
    tickets.refuses = None
    assert await refused(gateway, key="k") == "ticket_stolen"
    assert provider.requests == []
    assert tickets.ledger == {}
    # The key is free for another proof.
    tickets.proof = {"payer": "a"}
    assert await bought(gateway, "b:20000", key="k")


async def test_an_answer_that_was_lost_is_asked_for_again(gateway, tickets, provider):
    tickets.raises_after = [OSError("connection lost"), OSError("again")]
    tickets.raises_before = [RuntimeError("down")]
    task_id = await bought(gateway)
    assert (await gateway.wait(task_id))["status"] == "completed"
    assert tickets.ledger == {"ticket:a": task_id}
    assert len(set(tickets.asked)) == 1
    assert len(tickets.asked) == 4
    assert len(provider.requests) == 1


async def test_an_answer_that_is_none_is_no_answer(gateway, tickets):
    tickets.answer = "yes"
    gateway.services.payments.outcome_s = 0.2
    task_id = await bought(gateway)
    await tickets.was_asked.wait()
    assert (await known(gateway, task_id))["payment"]["state"] == "settling"
    tickets.answer = None
    assert (await gateway.wait(task_id))["status"] == "completed"


async def test_a_silent_method_is_a_task_that_waits_and_never_a_402(gateway, tickets):
    tickets.opened.clear()
    gateway.services.payments.outcome_s = 0.05
    answer = await pay(gateway)
    assert answer.status_code == 200
    assert answer.headers["Ticket-Receipt"] == "unknown"
    task_id = (await answer.get_json())["taskId"]
    assert await bought(gateway) == task_id
    tickets.opened.set()
    assert (await gateway.wait(task_id))["status"] == "completed"
    assert len(tickets.asked) == 1


async def test_a_buyer_that_hangs_up_has_bought(gateway, tickets):
    tickets.opened.clear()
    request = asyncio.create_task(pay(gateway))
    await tickets.was_asked.wait()
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
    tickets.opened.set()
    task_id = await bought(gateway)
    assert (await gateway.wait(task_id))["status"] == "completed"
    assert tickets.ledger == {"ticket:a": task_id}


async def test_a_repeat_that_is_refused_waits_for_a_write_that_is_under_way(gateway, tickets):
    payments, methods = gateway.services.payments, gateway.services.store.methods
    reserve, wait_for_writes = methods.reserve, payments.wait_for_writes
    reserving, waiting = asyncio.Event(), asyncio.Event()

    async def slow_reserve(*arguments, **more):
        reserving.set()
        # Not written before the repeat waits for it; otherwise the repeat gets a 402.
        await waiting.wait()
        return await reserve(*arguments, **more)

    async def counted_wait():
        waiting.set()
        await wait_for_writes()

    methods.reserve, payments.wait_for_writes = slow_reserve, counted_wait
    request = asyncio.create_task(pay(gateway))
    await reserving.wait()
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
    # It has expired by now.
    tickets.is_bad = "ticket_expired"
    try:
        task_id = await bought(gateway)
    finally:
        waiting.set()
    assert tickets.ledger == {"ticket:a": task_id}


async def test_a_refusal_waits_for_the_request_that_may_take_its_proof(gateway, tickets, provider):
    async with first_held(provider, lambda: pay(gateway)) as (first, held):
        tickets.is_bad = "ticket_not_yet_valid"
        second = await held.refuse(lambda: pay(gateway))
        tickets.is_bad = None
        held.may_go_on.set()
        answers = await asyncio.gather(first, second)
    assert held.refusals == ["ticket_not_yet_valid"]
    bodies = [await answer.get_json() for answer in answers]
    assert [answer.status_code for answer in answers] == [200, 200], bodies
    assert tickets.ledger == {"ticket:a": bodies[0]["taskId"]} == {"ticket:a": bodies[1]["taskId"]}


@pytest.mark.parametrize("receipt", [RuntimeError("no"), "a\r\nX: b", "é", 7], ids=repr)
async def test_a_receipt_that_fails_keeps_no_task_from_its_buyer(gateway, tickets, receipt):
    tickets.receipt = receipt
    answer = await pay(gateway)
    assert answer.status_code == 200
    assert "Ticket-Receipt" not in answer.headers
    task_id = (await answer.get_json())["taskId"]
    assert await bought(gateway) == task_id
    assert (await gateway.wait(task_id))["status"] == "completed"


# -- a failed task


async def test_a_failed_task_owes_the_whole_value_to_whom_the_proof_names(
    gateway, tickets, provider
):
    from gateway.errors import InvalidInput

    provider.script = [InvalidInput("No boats.")]
    tickets.proof = {"refund_to": REFUND_TO}
    task_id = await bought(gateway, "a:50000")
    failed = await gateway.wait(task_id)
    assert (failed["status"], failed["refund"]["amount"]) == ("failed", 0.05)
    case = await gateway.services.store.refunds.case(task_id)
    assert (case.amount_units, case.recipient) == (50_000, REFUND_TO)


# -- after a restart


async def test_a_start_asks_again_for_what_was_left_open(settings, provider, clock, tickets):
    tickets.opened.clear()
    plugin = TicketPlugin(tickets)
    async with running(settings, provider, [plugin], now=clock) as gateway:
        soon(gateway)
        gateway.services.payments.outcome_s = 0.05
        gateway.services.timing = attrs.evolve(gateway.services.timing, drain_payments_s=0.05)
        task_id = await bought(gateway)
        await tickets.was_asked.wait()
    tickets.opened.set()
    async with running(settings, provider, [plugin], now=clock) as gateway:
        assert (await gateway.wait(task_id))["status"] == "completed"
        assert await bought(gateway) == task_id
    assert tickets.ledger == {"ticket:a": task_id}
    assert len(set(tickets.asked)) == 1
    assert len(tickets.asked) == 2


async def test_without_its_method_a_payment_stays_open_and_comes_back(
    settings, provider, clock, tickets
):
    tickets.opened.clear()
    plugin = TicketPlugin(tickets)
    async with running(settings, provider, [plugin], now=clock) as gateway:
        gateway.services.payments.outcome_s = 0.05
        gateway.services.timing = attrs.evolve(gateway.services.timing, drain_payments_s=0.05)
        task_id = await bought(gateway)
        await tickets.was_asked.wait()
    tickets.opened.set()
    async with running(settings, provider, now=clock) as gateway:
        await gateway.services.method_settlements._sweep()
        assert (await known(gateway, task_id))["payment"]["state"] == "settling"
    async with running(settings, provider, [plugin], now=clock) as gateway:
        assert (await gateway.wait(task_id))["status"] == "completed"
