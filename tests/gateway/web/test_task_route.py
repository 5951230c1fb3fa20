"""GET /api/task/{taskId}: a caller's view of a generation."""

import asyncio
import contextlib
import sqlite3
import time
import uuid

import attrs
import pytest

from gateway import ContentPolicy, InvalidInput, RateLimited, Result, Transient, hookimpl
from gateway.payments.settlement import SettlementTiming
from gateway.tasks.notifications import Subscription
from tests.cases import each
from tests.conftest import PNG, ScriptedPlugin, cancel, running
from tests.patience import until

SECRET = "prompt-nobody-may-see"
FILE = {"fileBase64": "aGVsbG8gc2VjcmV0", "fileName": "secret-name.txt"}
FIELDS = {
    "taskId",
    "status",
    "done",
    "slug",
    "capability",
    "progress",
    "attempt",
    "maxAttempts",
    "pollAfterSeconds",
    "createdAt",
    "startedAt",
    "completedAt",
    "expiresAt",
    "payment",
    "result",
    "error",
    "code",
    "details",
    "refund",
}


async def order(gateway, payer, *, slug="picture", **fields) -> str:
    """Buy by x402 and return the task's id."""
    units = 20_000 if slug == "picture" else 10_000
    body = {"prompt": SECRET} | fields
    answer = await gateway.client.post(
        f"/api/x402/{slug}", json=body, headers={"X-PAYMENT": payer.header(units)}
    )
    assert answer.status_code == 200, await answer.get_json()
    return (await answer.get_json())["taskId"]


async def show(gateway, task_id, wait="0") -> dict:
    answer = await gateway.client.get(f"/api/task/{task_id}?wait={wait}")
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    body = await answer.get_json()
    is_open = body["payment"]["state"] in ("reserved", "settling")
    assert set(body) == FIELDS | ({"decidedBy"} if is_open else set())
    return body


@pytest.fixture
def held(provider):
    """Keep the provider busy until the event is set."""
    release = asyncio.Event()

    async def step(request, job):
        await job.progress(0.5)
        await release.wait()

    provider.script = [step]
    return release


# -- states


async def test_a_completed_task_shows_its_result(gateway, payer):
    task = await gateway.wait(await order(gateway, payer))
    assert set(task) == FIELDS
    assert uuid.UUID(task["taskId"]).version == 4
    assert (task["status"], task["done"]) == ("completed", True)
    assert (task["slug"], task["capability"]) == ("picture", "text-to-image")
    assert (task["attempt"], task["maxAttempts"]) == (1, 4)
    assert task["pollAfterSeconds"] is None
    times = [task[name] for name in ("createdAt", "startedAt", "completedAt", "expiresAt")]
    assert times == sorted(times)
    assert all(at.endswith("Z") and "T" in at for at in times)
    transaction = task["payment"].pop("transaction")
    assert len(transaction) == 66
    assert task["payment"] == {
        "flow": "x402",
        "state": "settled",
        "amount": 0.02,
        "network": "base",
    }
    assert [task[name] for name in ("error", "code", "details", "refund")] == [None] * 4
    (output,) = task["result"]["outputs"]
    assert task["result"]["text"] is None
    assert output["url"].startswith("http://gateway.test/files/")
    assert output["mimeType"] == "image/png"
    assert (output["width"], output["height"], output["bytes"]) == (1, 1, len(PNG))
    assert len(output["sha256"]) == 64


async def test_a_task_is_queued_then_processing_then_completed(settings, provider, payer, held):
    async with running(attrs.evolve(settings, workers=1), provider) as gateway:
        first, second = await order(gateway, payer), await order(gateway, payer)
        for _ in range(600):  # progress is written down once a second
            if (task := await show(gateway, first))["progress"]:
                break
            await asyncio.sleep(0.1)
        assert (task["status"], task["done"], task["progress"]) == ("processing", False, 0.5)
        assert (task["attempt"], task["pollAfterSeconds"], task["result"]) == (1, 2, None)
        waiting = await show(gateway, second)
        assert (waiting["status"], waiting["attempt"]) == ("queued", 0)
        assert (waiting["startedAt"], waiting["completedAt"]) == (None, None)
        assert waiting["payment"]["state"] == "settled"
        held.set()
        for task_id in (first, second):
            assert (await gateway.wait(task_id))["status"] == "completed"


async def test_a_direct_task_shows_what_was_paid(gateway, payer):
    tx_hash = payer.transfer(50_000)
    body = {"slug": "picture", "prompt": "a", "txHash": tx_hash}
    answer = await gateway.client.post("/api/proxy-generate", json=body)
    task = await gateway.wait((await answer.get_json())["taskId"])
    assert task["payment"] == {
        "flow": "direct",
        "state": "settled",
        "amount": 0.05,
        "network": "base",
        "transaction": tx_hash,
    }


@pytest.fixture
def waits(monkeypatch):
    """An event that is set once a request waits; then only a notification wakes the request."""
    wait, is_waiting = Subscription.wait, asyncio.Event()

    async def until_posted(subscription, timeout_s):
        is_waiting.set()
        await wait(subscription, 3600)

    monkeypatch.setattr(Subscription, "wait", until_posted)
    return is_waiting


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


@each(
    "task_id",
    ["2f1d6a52-7b7c-4c0e-9d43-0a6f5f1f7c11", "x", "0" * 500, "%27%20OR%201=1", "%00", "é"],
)
async def test_an_unknown_task_is_not_found(gateway, task_id):
    for wait in ("", "?wait=1"):
        answer = await gateway.client.get(f"/api/task/{task_id}{wait}")
        assert answer.status_code == 404
        assert (await answer.get_json())["code"] == "NOT_FOUND"


@pytest.mark.parametrize("outcome", [None, ContentPolicy("The filter refused it.")])
async def test_a_task_tells_neither_prompt_nor_payer_nor_file(gateway, payer, provider, outcome):
    provider.script = [outcome or Result(text="# parsed")]
    task_id = await order(gateway, payer, slug="paper", **FILE)
    await gateway.wait(task_id)
    text = (await (await gateway.client.get(f"/api/task/{task_id}")).get_data()).decode()
    for secret in (SECRET, payer.account.address[2:].lower(), *FILE.values()):
        assert secret not in text.lower()
    assert secret not in text


# -- failures


async def test_three_retries_are_automatic(gateway, payer, provider):
    provider.script = [Transient("busy"), OSError("reset"), ValueError("odd")]
    task = await gateway.wait(await order(gateway, payer))
    assert (task["status"], task["attempt"]) == ("completed", 4)
    assert task["code"] is None


FAILURES = {  # (what the provider does each time, attempts, details)
    "transient": (Transient("api key sk-123 is over quota"), 4, "provider_error"),
    "unexpected": (RuntimeError("api key sk-123"), 4, "provider_error"),
    "nothing": (Result(), 1, "content_policy"),
    "too slow": (TimeoutError(), 4, "timed_out"),
    "content": (ContentPolicy("The filter refused it."), 1, "content_policy"),
    "input": (InvalidInput("The page is empty."), 1, "invalid_input"),
}


@pytest.mark.parametrize(("step", "attempts", "details"), FAILURES.values(), ids=FAILURES)
async def test_a_failure_says_why_and_owes_the_money_back(
    gateway, payer, provider, step, attempts, details
):
    provider.script = [step] * 9
    task = await gateway.wait(await order(gateway, payer))
    assert (task["status"], task["done"]) == ("failed", True)
    assert (task["code"], task["details"]) == ("GENERATION_FAILED", details)
    assert (task["attempt"], len(provider.requests)) == (attempts, attempts)
    assert task["error"]
    assert "sk-123" not in task["error"]
    assert task["result"] is None
    assert task["completedAt"] is not None
    assert task["pollAfterSeconds"] is None
    assert task["payment"]["state"] == "settled"
    assert task["refund"] == {"state": "refund_due", "amount": 0.02, "transaction": None}


async def test_all_that_was_overpaid_is_owed_back(gateway, payer, provider):
    provider.script = [ContentPolicy("No.")]
    body = {"slug": "picture", "prompt": "a", "txHash": payer.transfer(70_000)}
    answer = await gateway.client.post("/api/proxy-generate", json=body)
    task = await gateway.wait((await answer.get_json())["taskId"])
    assert task["refund"]["amount"] == 0.07


async def test_being_asked_to_wait_costs_no_attempt(gateway, payer, provider):
    resources = gateway.services.workers.resources
    resources.timing = attrs.evolve(resources.timing, rate_limit_s=(0.01, 1.0))
    provider.script = [RateLimited("slow down", retry_after_s=0.02)] * 6
    task = await gateway.wait(await order(gateway, payer))
    assert (task["status"], task["attempt"]) == ("completed", 1)
    assert len(provider.requests) == 7


class ImpatientPlugin(ScriptedPlugin):
    """Sells the same with a tenth of a second for each attempt."""

    __name__ = "impatient-plugin"

    @hookimpl
    def register_endpoints(self, register, settings) -> None:
        super().register_endpoints(
            lambda endpoint, provider: register(attrs.evolve(endpoint, timeout_s=0.1), provider),
            settings,
        )


async def test_an_attempt_that_hangs_is_cut_off_and_made_again(settings, provider, payer):
    async def hang(request, job):
        await asyncio.sleep(60)

    provider.script = [hang]
    async with running(settings, more=[ImpatientPlugin(provider)]) as gateway:
        task = await gateway.wait(await order(gateway, payer))
        assert (task["status"], task["attempt"]) == ("completed", 2)
        provider.script = [hang] * 4
        task = await gateway.wait(await order(gateway, payer))
        assert (task["status"], task["details"]) == ("failed", "timed_out")


# -- a payment that is not made


@pytest.fixture
def quick(gateway, chain):
    """Give up soon on an unknown outcome, and poll the chain often."""
    gateway.services.payments.outcome_s = 0.2
    gateway.services.settlements.timing = SettlementTiming(poll_s=0.05, full_check_s=0.2)
    chain.set_automine(False)


async def _is_dropped(gateway, provider, task_id):
    task = await show(gateway, task_id, wait="10")
    assert (task["status"], task["done"]) == ("failed", True)
    assert task["code"] == "PAYMENT_NOT_SETTLED"
    assert task["error"]
    assert task["payment"]["state"] == "released"
    assert task["payment"]["transaction"] is None
    assert task["refund"] is None
    assert provider.requests == []


async def test_a_payer_who_cancels_gets_nothing(gateway, payer, provider, chain, quick):
    signed = payer.authorization()
    header = payer.header(nonce=signed.nonce, valid_before=signed.valid_before)
    answer = await gateway.client.post(
        "/api/x402/picture", json={"prompt": "a"}, headers={"X-PAYMENT": header}
    )
    task_id = (await answer.get_json())["taskId"]
    async with asyncio.timeout(60):
        while (task := await show(gateway, task_id))["payment"]["state"] == "reserved":  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert (task["status"], task["payment"]["state"]) == ("queued", "settling")
    assert task["payment"]["transaction"] is None
    async with asyncio.timeout(60):
        while not chain.node.pool.waiting:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    # Meanwhile the gateway cannot resend the dropped transaction.
    with chain.node.lock:
        (ours,) = chain.node.pool.waiting
        assert chain.drop("0x" + ours.hex())
        cancel(chain, payer, signed.nonce)
        chain.mine()
    await _is_dropped(gateway, provider, task_id)
    again = await gateway.client.post(
        "/api/x402/picture", json={"prompt": "a"}, headers={"X-PAYMENT": header}
    )
    assert again.status_code == 402


async def test_waiting_ends_when_the_payment_turns_out_not_to_have_happened(
    gateway, payer, provider, chain, quick, waits
):
    task_id = await order(gateway, payer)
    waiting = asyncio.create_task(show(gateway, task_id, wait="30"))
    await waits.wait()
    chain.advance(400)
    task = await _answered(waiting)
    assert (task["status"], task["code"]) == ("failed", "PAYMENT_NOT_SETTLED")


async def test_an_authorization_that_expires_unmined_takes_nothing(
    gateway, payer, provider, chain, quick
):
    task_id = await order(gateway, payer)
    chain.advance(400)  # mines our transaction past validBefore, where it reverts
    await _is_dropped(gateway, provider, task_id)
