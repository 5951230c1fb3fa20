"""GET /api/task/{taskId}?wait=: long polls."""

import asyncio
import contextlib
import sqlite3
import time

import attrs

from tests.cases import each
from tests.conftest import running
from tests.gateway.web.orders import order, show
from tests.patience import until


async def _answered(waiting) -> dict:
    async with asyncio.timeout(60):
        return await waiting


async def test_waiting_ends_when_the_task_does(gateway, payer, held, waits):
    """The task's end wakes the request: here no timer would."""
    task_id = await order(gateway, payer)
    waiting = asyncio.create_task(show(gateway, task_id, wait="30"))
    await waits.wait()
    held.set()
    assert (await _answered(waiting))["status"] == "completed"


async def test_waiting_ends_when_the_gateway_stops(gateway, payer, held, waits):
    task_id = await order(gateway, payer)
    waiting = asyncio.create_task(show(gateway, task_id, wait="30"))
    await waits.wait()
    gateway.services.lifecycle.stop_selling()
    gateway.services.end_waits()
    assert not (await _answered(waiting))["done"]
    assert not (await _answered(show(gateway, task_id, wait="30")))["done"]
    held.set()


async def test_waiting_ends_when_another_process_ended_the_task(gateway, payer, provider):
    """Without a notification, this process polls."""
    has_started, end = asyncio.Event(), asyncio.Event()

    async def step(request, job):
        has_started.set()
        await end.wait()

    provider.script = [step]
    services = gateway.services
    services.timing = attrs.evolve(services.timing, poll_s=0.05)
    task_id = await order(gateway, payer)
    await has_started.wait()
    waiting = asyncio.create_task(show(gateway, task_id, wait="30"))
    with contextlib.closing(sqlite3.connect(services.settings.data_dir / "gateway.db")) as other:
        other.execute("""UPDATE tasks SET status = 'completed', result = '{"text": "done"}'""")
        other.commit()
    assert (await _answered(waiting))["result"]["text"] == "done"
    end.set()


async def polled(gateway, task_id, client) -> dict:
    """Poll from an address, with the longest wait."""
    answer = await gateway.client.get(
        f"/api/task/{task_id}?wait=30", scope_base={"client": (client, 50_000)}
    )
    assert answer.status_code == 200
    return await answer.get_json()


async def test_beyond_the_cap_of_an_address_or_of_all_the_present_state_is_told_at_once(
    settings, provider, chain, payer, held
):
    changes = {"max_long_polls": 3, "max_long_polls_per_address": 2}
    async with running(attrs.evolve(settings, **changes), provider) as gateway:
        await gateway.services.payments.cutoff_block()
        task_id = await order(gateway, payer)

        def wait(client):
            return asyncio.create_task(polled(gateway, task_id, client))

        waiting = [wait("203.0.113.1"), wait("203.0.113.1"), wait("203.0.113.2")]
        await until(lambda: gateway.services.long_polls.waiting == len(waiting))
        for client in ("203.0.113.1", "203.0.113.2", "203.0.113.3"):
            polled_task = await asyncio.wait_for(polled(gateway, task_id, client), 15)
            assert not polled_task["done"]
        assert not any(task.done() for task in waiting)
        held.set()
        assert all([(await task)["done"] for task in waiting])
        assert (await polled(gateway, task_id, "203.0.113.3"))["done"]


async def test_a_waiting_request_that_ended_makes_room_for_another(
    settings, provider, chain, payer, held
):
    async with running(attrs.evolve(settings, max_long_polls=1), provider) as gateway:
        await gateway.services.payments.cutoff_block()
        task_id = await order(gateway, payer)
        for _ in range(3):
            await show(gateway, task_id, wait="0.1")
            answer = await gateway.client.get("/api/task/none?wait=30")
            assert answer.status_code == 404
        waiting = asyncio.create_task(polled(gateway, task_id, "203.0.113.1"))
        await until(lambda: gateway.services.long_polls.waiting)
        held.set()
        assert (await waiting)["done"]


async def test_waiting_ends_after_the_seconds_asked_for(gateway, payer, held):
    task_id = await order(gateway, payer)
    began = time.perf_counter()
    assert (await show(gateway, task_id, wait="0.3"))["status"] == "processing"
    assert 0.25 < time.perf_counter() - began < 20  # seconds; the longest wait is 30
    held.set()


@each("wait", ["-1", "30.1", "1e9", "inf", "nan", "soon", "", "0x1"])
async def test_waiting_is_a_number_from_0_to_30(gateway, payer, wait):
    answer = await gateway.client.get(f"/api/task/{await order(gateway, payer)}?wait={wait}")
    assert answer.status_code == 400
    assert (await answer.get_json())["code"] == "VALIDATION_ERROR"


async def test_waiting_ends_when_the_payment_turns_out_not_to_have_happened(
    gateway, payer, provider, chain, quick, waits
):
    task_id = await order(gateway, payer)
    waiting = asyncio.create_task(show(gateway, task_id, wait="30"))
    await waits.wait()
    chain.advance(400)
    task = await _answered(waiting)
    assert (task["status"], task["code"]) == ("failed", "PAYMENT_NOT_SETTLED")
