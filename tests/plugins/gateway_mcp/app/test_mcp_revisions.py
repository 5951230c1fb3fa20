"""Each message follows the negotiated revision, so old clients can read their results.

The official SDKs of 2025-03-26 (TypeScript 1.10, Python 1.8) know three kinds of content, and
raise for a result with any other.
"""

import json

import pytest

from tests.cases import each
from tests.plugins.gateway_mcp.app.agent import LEGACY, MODERN, Agent

# Without a header the revision is 2025-03-26.
OLD = ("2024-11-05", "2025-03-26", "")
NEW = ("2025-06-18", LEGACY, MODERN)
KNOWN_OF_OLD = {"text", "image", "resource"}
EVERY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]


@pytest.mark.parametrize("version", OLD)
async def test_a_client_of_an_old_revision_can_read_what_it_bought(gateway, payer, version):
    agent = Agent(gateway, version)
    asked = await agent.call("picture", prompt="a boat")
    assert "structuredContent" not in asked
    assert json.loads(asked["content"][0]["text"])["accepts"][0]["amount"] == "20000"
    bought = await agent.call("picture", payment=payer.payload(version=2), prompt="a boat")
    assert set(bought) == {"content", "isError", "_meta"}
    assert {block["type"] for block in bought["content"]} == {"text", "image"} <= KNOWN_OF_OLD
    task, link, _ = bought["content"]
    url = json.loads(task["text"])["result"]["outputs"][0]["url"]
    assert link["text"].endswith(url)
    assert bought["_meta"]["x402/payment-response"]["success"] is True


@pytest.mark.parametrize("version", NEW)
async def test_a_client_of_a_later_revision_gets_links_and_structure(gateway, payer, version):
    bought = await Agent(gateway, version).call(
        "picture", payment=payer.payload(version=2), prompt="a boat"
    )
    assert bought["structuredContent"]["status"] == "completed"
    assert [block["type"] for block in bought["content"]] == ["text", "resource_link", "image"]


@each(
    "version, later",
    [
        ("2024-11-05", {"title", "_meta", "annotations"}),
        ("2025-03-26", {"title", "_meta"}),
        ("", {"title", "_meta"}),
        ("2025-06-18", set()),
        (LEGACY, set()),
        (MODERN, set()),
    ],
)
async def test_tools_have_the_fields_of_their_revision(gateway, version, later):
    listed = await Agent(gateway, version).ask("tools/list")
    tool = next(one for one in listed["result"]["tools"] if one["name"] == "picture")
    every = {"name", "description", "inputSchema", "title", "_meta", "annotations"}
    assert set(tool) == every - later


@pytest.mark.parametrize("version", EVERY[:-1])
async def test_a_handshake_answers_in_the_revision_that_it_agrees_to(gateway, version):
    params = {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "a", "version": "1"},
    }
    # A client sends no header before the revision is negotiated.
    agreed = (await Agent(gateway, "").ask("initialize", params))["result"]
    assert agreed["protocolVersion"] == version
    assert ("websiteUrl" in agreed["serverInfo"]) == (version == LEGACY)
    assert "extensions" not in agreed["capabilities"]


@each("version", ["2099-01-01", "2025-03-27", "latest", "x" * 500])
@each("method", ["initialize", "tools/list", "tools/call"])
async def test_an_unknown_revision_is_answered_with_those_that_are_spoken(gateway, version, method):
    agent = Agent(gateway, version)
    answer = await agent.send(agent.message(method, {"name": "picture", "arguments": {}}))
    body = await answer.get_json()
    assert (answer.status_code, body["id"]) == (400, 1)
    assert body["error"]["code"] == -32022
    assert body["error"]["data"] == {"supported": EVERY, "requested": version[:64]}


async def test_a_slash_at_the_end_of_the_address_changes_nothing(gateway, payer):
    agent = Agent(gateway, LEGACY, path="/mcp/")
    bought = await agent.call("picture", payment=payer.payload(version=2), prompt="a boat")
    assert bought["structuredContent"]["status"] == "completed"
    assert (await gateway.client.get("/mcp/")).status_code == 405
