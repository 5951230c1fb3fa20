"""An agent buys with tools, in both eras and in every dialect of payment."""

import base64
import json

import pytest

from gateway.errors import ContentPolicy
from gateway.tasks.notifications import LongPolls
from tests.authorizations import header_of
from tests.cases import each
from tests.conftest import PNG, nothing_charged
from tests.plugins.gateway_mcp.app.agent import MODERN, TASKS, Agent

MCP = "http://gateway.test/mcp"


def types_of(result) -> list[str]:
    return [block["type"] for block in result["content"]]


async def test_the_tools_are_what_is_on_sale_and_a_free_one(agent, gateway):
    listed = await agent.ask("tools/list")
    tools = {tool["name"]: tool for tool in listed["result"]["tools"]}
    assert set(tools) == {"picture", "paper", "document_parser", "get_task"}
    picture = tools["picture"]
    assert picture["description"] == "One pixel. Costs 0.02 USDC on base, paid by x402."
    assert picture["_meta"] == {
        "agents-x402/paymentRequired": True,
        "agents-x402/priceUSD": 0.02,
    }
    assert picture["inputSchema"]["required"] == ["prompt"]
    assert picture["inputSchema"]["properties"]["aspect_ratio"]["enum"] == ["1:1", "16:9"]
    assert picture["annotations"]["readOnlyHint"] is False
    assert "fileUrl" not in picture["inputSchema"]["properties"]
    assert set(tools["paper"]["inputSchema"]["properties"]) >= {"fileUrl", "fileBase64", "fileName"}
    assert tools["paper"]["inputSchema"]["required"] == []
    gateway.services.catalog["picture"].upstream.circuit.trip("402: top up")
    listed = await agent.ask("tools/list")
    assert "picture" not in {tool["name"] for tool in listed["result"]["tools"]}


async def test_an_unpaid_call_tells_the_price_to_every_kind_of_client(agent, gateway, chain):
    async with nothing_charged(gateway, chain):
        answer = await agent.call("picture", prompt="a boat")
    price = answer["structuredContent"]
    assert answer["isError"] is True
    assert json.loads(answer["content"][0]["text"]) == price
    assert "_meta, under x402/payment" in answer["content"][1]["text"]
    assert answer["_meta"]["x402/error"] == price
    assert price["x402Version"] == 2
    assert price["resource"]["url"] == MCP
    assert price["accepts"][0]["amount"] == "20000"
    assert price["accepts"][0]["network"] == "eip155:8453"


async def test_a_paid_call_returns_the_picture_and_the_receipt(agent, gateway, payer, chain):
    answer = await agent.call("picture", payer.payload(version=2), prompt="a boat")
    assert answer["isError"] is False
    assert types_of(answer) == ["text", "resource_link", "image"]
    task, link, picture = answer["content"]
    assert json.loads(task["text"]) == answer["structuredContent"]
    assert link["mimeType"] == "image/png"
    assert link["size"] == len(PNG)
    assert base64.b64decode(picture["data"]) == PNG
    file = await gateway.client.get(link["uri"].removeprefix("http://gateway.test"))
    assert await file.get_data() == PNG
    receipt = answer["_meta"]["x402/payment-response"]
    assert receipt["success"] is True
    assert receipt["network"] == "eip155:8453"
    assert receipt["payer"] == payer.account.address
    assert receipt["transaction"] == answer["structuredContent"]["payment"]["transaction"]
    assert chain.receipt(receipt["transaction"])["status"] == "0x1"


@pytest.mark.parametrize("version", [1, 2])
async def test_the_payment_may_be_base64_as_cloudflares_client_sends_it(modern, payer, version):
    payment = header_of(payer.payload(version=version))
    answer = await modern.call("picture", payment, prompt="a boat")
    assert answer["structuredContent"]["status"] == "completed"
    assert answer["_meta"]["x402/payment-response"]["success"] is True


async def test_the_same_payment_again_is_the_same_task(agent, gateway, payer, chain):
    payment = payer.payload(version=2)
    first = await agent.call("picture", payment, prompt="a boat")
    async with nothing_charged(gateway, chain):
        again = await agent.call("picture", payment, prompt="a boat")
        other = await agent.call("picture", payment, prompt="another boat")
    assert again["structuredContent"]["taskId"] == first["structuredContent"]["taskId"]
    assert again["_meta"]["x402/payment-response"] == first["_meta"]["x402/payment-response"]
    assert other["isError"] is True
    assert other["structuredContent"]["error"] == "invalid_exact_evm_nonce_already_used"


async def test_a_payment_over_http_and_one_by_a_tool_are_the_same_payment(modern, gateway, payer):
    payload = payer.payload(version=2)
    bought = await gateway.client.post(
        "/api/x402/picture", json={"prompt": "a boat"}, headers={"X-PAYMENT": header_of(payload)}
    )
    task_id = (await bought.get_json())["taskId"]
    answer = await modern.call("picture", payload, prompt="a boat")
    assert answer["structuredContent"]["taskId"] == task_id


@each(
    "payment", [{}, [], 5, "", "!", "e30=", {"x402Version": 2, "payload": {}}, {"x402Version": 3}]
)
async def test_a_malformed_payment_is_refused_with_the_price(modern, gateway, chain, payment):
    async with nothing_charged(gateway, chain):
        answer = await modern.call("picture", payment, prompt="a boat")
    assert answer["isError"] is True
    assert answer["structuredContent"]["error"] in ("invalid_payload", "invalid_x402_version")
    assert answer["structuredContent"]["accepts"][0]["amount"] == "20000"


async def test_a_payment_of_too_little_is_refused_with_the_reason(modern, gateway, chain, payer):
    async with nothing_charged(gateway, chain):
        answer = await modern.call("picture", payer.payload(10, version=2), prompt="a boat")
    reason = "invalid_exact_evm_payload_authorization_value_mismatch"
    assert answer["structuredContent"]["error"] == reason


async def test_a_payment_that_is_valid_for_too_long_hears_the_bound(modern, clock, payer):
    late = payer.payload(version=2, valid_before=int(clock()) + 4_000)
    answer = await modern.call("picture", late, prompt="a boat")
    _, content = answer["content"]
    assert "validBefore must be 20 to 3900 seconds ahead" in content["text"]


@each(
    "arguments, sentence",
    [
        ({}, "prompt is missing."),
        ({"prompt": 5}, "prompt must be a string."),
        ({"prompt": "x", "aspect_ratio": "4:3"}, "aspect_ratio must be one of: 1:1, 16:9."),
        ({"prompt": "x" * 10_001}, "prompt must have 1 to 10,000 characters."),
        ({"prompt": "x", "fileBase64": "eA==", "fileName": "a"}, "This endpoint takes no file."),
    ],
)
@each("paid", [False, True])
async def test_a_doomed_call_is_refused_before_its_payment(
    modern, gateway, chain, payer, arguments, sentence, paid
):
    payment = payer.payload(version=2) if paid else None
    async with nothing_charged(gateway, chain):
        answer = await modern.call("picture", payment, **arguments)
    assert answer["isError"] is True
    assert json.loads(answer["content"][0]["text"]) == {
        "error": sentence,
        "code": "VALIDATION_ERROR",
    }


async def test_a_task_that_fails_is_an_error_that_says_what_becomes_of_the_money(
    modern, provider, payer
):
    provider.script = [ContentPolicy("no boats")]
    answer = await modern.call("picture", payer.payload(version=2), prompt="a boat")
    assert answer["isError"] is True
    assert answer["structuredContent"]["status"] == "failed"
    assert answer["structuredContent"]["refund"]["state"] == "refund_due"
    assert answer["_meta"]["x402/payment-response"]["success"] is True


async def test_a_document_comes_as_markdown(modern, payer):
    arguments = {"fileBase64": "eA==", "fileName": "a.txt"}
    answer = await modern.call("paper", payer.payload(10_000, version=2), **arguments)
    assert types_of(answer) == ["text", "text", "resource_link"]
    assert json.loads(answer["content"][0]["text"])["result"]["text"] is None
    assert answer["content"][1]["text"] == "# a.txt\n"
    assert answer["structuredContent"]["result"]["text"] == "# a.txt\n"


# -- waiting


async def test_get_task_shows_the_result_again(agent, payer):
    bought = await agent.call("picture", payer.payload(version=2), prompt="a boat")
    task_id = bought["structuredContent"]["taskId"]
    shown = await agent.call("get_task", taskId=task_id, wait=30)
    assert shown["structuredContent"] == bought["structuredContent"]
    assert types_of(shown) == ["text", "resource_link", "image"]


@each(
    "arguments, code",
    [
        ({"taskId": "nobody"}, "NOT_FOUND"),
        ({"taskId": 5}, "VALIDATION_ERROR"),
        ({}, "VALIDATION_ERROR"),
        ({"taskId": "x", "wait": 31}, "VALIDATION_ERROR"),
        ({"taskId": "x", "wait": "soon"}, "VALIDATION_ERROR"),
    ],
)
async def test_get_task_says_what_is_wrong(modern, arguments, code):
    answer = await modern.call("get_task", **arguments)
    assert answer["isError"] is True
    assert json.loads(answer["content"][0]["text"])["code"] == code


async def test_a_task_that_takes_long_is_named_for_get_task(modern, gateway, payer, blocked):
    # No request waits while too many others do.
    usual, gateway.services.long_polls = gateway.services.long_polls, LongPolls(0, 0)
    answer = await modern.call("picture", payer.payload(version=2), prompt="a boat")
    task_id = answer["structuredContent"]["taskId"]
    assert answer["isError"] is False
    assert answer["structuredContent"]["done"] is False
    assert f'Call get_task with taskId "{task_id}"' in answer["content"][1]["text"]
    gateway.services.long_polls = usual
    blocked.set()
    await gateway.wait(task_id)
    shown = await modern.call("get_task", taskId=task_id)
    assert shown["structuredContent"]["status"] == "completed"


# -- tasks instead of results


async def test_a_client_that_takes_tasks_gets_one_and_then_its_result(gateway, payer, blocked):
    agent = Agent(gateway, MODERN, TASKS)
    begun = await agent.call("picture", payer.payload(version=2), prompt="a boat")
    assert begun["resultType"] == "task"
    assert begun["status"] == "working"
    assert begun["pollIntervalMs"] == 2000
    assert begun["_meta"]["x402/payment-response"]["success"] is True
    # `@x402/mcp` discards an answer without content.
    assert begun["taskId"] in begun["content"][0]["text"]
    named = {"taskId": begun["taskId"]}
    shown = (await agent.ask("tasks/get", named))["result"]
    assert shown["status"] == "working"
    assert "result" not in shown
    cancelled = (await agent.ask("tasks/cancel", named))["result"]
    assert set(cancelled) == {"resultType", "_meta"}
    assert (await agent.ask("tasks/update", named))["error"]["code"] == -32602
    blocked.set()
    await gateway.wait(begun["taskId"])
    done = (await agent.ask("tasks/get", named))["result"]
    assert done["status"] == "completed"
    assert types_of(done["result"]) == ["text", "resource_link", "image"]


async def test_a_failed_task_is_completed_with_an_error_in_its_result(gateway, provider, payer):
    provider.script = [ContentPolicy("no boats")]
    agent = Agent(gateway, MODERN, TASKS)
    begun = await agent.call("picture", payer.payload(version=2), prompt="a boat")
    await gateway.wait(begun["taskId"])
    done = (await agent.ask("tasks/get", {"taskId": begun["taskId"]}))["result"]
    assert done["status"] == "completed"
    assert done["result"]["isError"] is True


async def test_an_unknown_task_is_an_error_of_json_rpc(gateway):
    answer = await Agent(gateway, MODERN, TASKS).ask("tasks/get", {"taskId": "nobody"})
    assert answer["error"]["code"] == -32602


async def test_the_older_protocol_knows_no_tasks(gateway):
    agent = Agent(gateway, "2025-11-25", TASKS)
    assert (await agent.ask("tasks/get", {"taskId": "x"}))["error"]["code"] == -32601
