"""The log of the real process: each line about a task has its context."""

import json

from tests.conftest import Payer, one_server
from tests.proof.process.gateway_process import PROMPT, until

# Fails like a vendor that quotes prompt and key.
FAILING = """
from gateway import AccountProblem, Endpoint, hookimpl, usdc
from gateway.vendors import Outbound

class Failing:
    name = "failing-vendor"

    def __init__(self, port):
        self.outbound = Outbound(f"http://127.0.0.1:{port}")

    async def submit(self, request, job):
        answer = await self.outbound.request("POST", "/v1", json={"prompt": request.prompt})
        answer.check()

@hookimpl
def register_endpoints(register, settings):
    import os
    register(
        Endpoint(slug="failing", title="Failing", description="Failing.", model="failing-1",
                 provider="failing-vendor", capability="text-to-image", price_units=usdc("0.02")),
        Failing(os.environ["VENDOR_PORT"]),
    )
"""


def buy(gateway, slug, payer, request_id) -> str:
    about = {"X-PAYMENT": payer.header(), "X-Request-Id": request_id}
    status, body = gateway.request("POST", f"/api/x402/{slug}", {"prompt": PROMPT}, about)
    assert status == 200, body
    return body["taskId"]


def lines_of(gateway) -> list[dict]:
    lines = [line for line in gateway.log.read_text().splitlines() if line.startswith("{")]
    return [json.loads(line) for line in lines]


@one_server
def test_each_line_about_a_task_says_what_it_is_about_also_after_a_restart(served, chain):
    served.start()
    task_id = buy(served, "slow", Payer(chain), "asked-by-a-buyer")
    until(served.calls)
    # It is written after the task is queued, so a kill could come first.
    until(lambda: served.events("payment.settled"))
    served.kill()
    served.let_go()
    served.start()
    assert served.task(task_id, wait_s=20)["status"] == "completed"
    until(lambda: served.events("task.completed"))
    lines = [line for line in lines_of(served) if line.get("task") == task_id]
    assert {"payment.settled", "task.completed"} <= {line["event"] for line in lines}
    for line in lines:
        about = {name: line.get(name) for name in ("slug", "provider", "payment", "request")}
        assert about == {
            "slug": "slow",
            "provider": "slow",
            "payment": 1,
            "request": "asked-by-a-buyer",
        }, line


@one_server
def test_a_vendors_refusal_is_told_in_its_own_words_without_prompt(
    served,
    chain,
    httpserver,
):
    error_body = {"error": {"code": "billing_hard_limit", "message": "Your limit is reached."}}
    httpserver.expect_request("/v1").respond_with_json(error_body, status=402)
    served.environment["VENDOR_PORT"] = str(httpserver.port)
    served.install("failing_provider", FAILING)
    served.start()
    task_id = buy(served, "failing", Payer(chain), "failing")
    assert served.task(task_id, wait_s=20)["status"] == "failed"
    (line,) = until(lambda: served.events("task.attempt_failed"))
    assert (line["error"], line["status"]) == ("AccountProblem", 402)
    assert (line["vendor_code"], line["vendor_message"]) == (
        "billing_hard_limit",
        "Your limit is reached.",
    )
    assert (line["task"], line["provider"]) == (task_id, "failing-vendor")
    assert PROMPT not in served.log.read_text()
