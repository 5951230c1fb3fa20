"""GET /api/task/{taskId}: a caller's view of a generation."""

import asyncio
import uuid

import attrs
import pytest

from gateway import ContentPolicy, InvalidInput, RateLimited, Result, Transient, hookimpl
from tests.authorizations import cancel
from tests.cases import each
from tests.conftest import PNG, ScriptedPlugin, running
from tests.gateway.web.orders import FIELDS, FILE, SECRET, order, show

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
    assert task["refund"].pop("message").startswith("It is due back to you")
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
        # A second block makes the first one's event final.
        chain.mine(2)
    await _is_dropped(gateway, provider, task_id)
    again = await gateway.client.post(
        "/api/x402/picture", json={"prompt": "a"}, headers={"X-PAYMENT": header}
    )
    assert again.status_code == 402


async def test_an_authorization_that_expires_unmined_takes_nothing(
    gateway, payer, provider, chain, quick
):
    task_id = await order(gateway, payer)
    chain.advance(400)  # mines our transaction past validBefore, where it reverts
    await _is_dropped(gateway, provider, task_id)
