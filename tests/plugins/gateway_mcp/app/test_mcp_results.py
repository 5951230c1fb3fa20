"""Results hold small pictures, Markdown up to 25,000 characters, and links."""

import asyncio
import contextlib
import json

import pytest

from gateway import Output, Result
from gateway.contracts import OutputStoreUnavailable
from gateway.tasks.notifications import LongPolls
from gateway_mcp.sdk_server import SdkServer
from tests.gateway.web.asgi_calls import Asked, Client
from tests.plugins.gateway_mcp.app.agent import MODERN, TASKS, Agent


async def test_long_markdown_is_cut_with_a_link_to_the_rest(agent, gateway, payer, provider):
    text = "# long\n" + "word " * 10_000
    provider.script = [Result(text=text)]
    arguments = {"fileBase64": "eA==", "fileName": "a.txt"}
    answer = await agent.call("paper", payer.payload(10_000, version=2), **arguments)
    whole, markdown, hint, link = answer["content"]
    assert json.loads(whole["text"])["result"]["text"] is None
    assert markdown["text"] == text[:25_000]
    assert answer["structuredContent"]["result"]["text"] == text[:25_000]
    assert hint["text"].startswith("These are the first 25,000 of 50,007 characters.")
    assert hint["text"].endswith(link["uri"])
    file = await gateway.client.get(link["uri"].removeprefix("http://gateway.test"))
    assert (await file.get_data()).decode() == text


async def test_a_picture_of_more_than_a_megabyte_is_a_link_only(modern, payer, provider):
    provider.script = [Result(outputs=(Output(data=_noise(), media_type="image/png"),))]
    answer = await modern.call("picture", payer.payload(version=2), prompt="noise")
    assert [block["type"] for block in answer["content"]] == ["text", "resource_link"]
    assert answer["content"][1]["size"] > 10**6


async def test_pictures_that_are_deleted_are_not_shown(modern, gateway, payer, clock):
    bought = await modern.call("picture", payer.payload(version=2), prompt="a boat")
    clock.offset_s = 8 * 86_400
    shown = await modern.call("get_task", taskId=bought["structuredContent"]["taskId"])
    assert [block["type"] for block in shown["content"]] == ["text"]
    assert shown["structuredContent"]["result"]["outputs"][0]["expired"] is True


async def test_a_picture_that_cannot_be_read_is_still_a_link(modern, gateway, payer, monkeypatch):
    async def read(output):
        raise OutputStoreUnavailable("The bucket is down.")

    monkeypatch.setattr(gateway.services.output_store, "read", read)
    answer = await modern.call("picture", payer.payload(version=2), prompt="a boat")
    assert [block["type"] for block in answer["content"]] == ["text", "resource_link"]


# -- how many answers hold pictures at once


async def test_beyond_a_few_answers_with_pictures_there_are_links_only(
    agent, gateway, payer, monkeypatch
):
    bought = await agent.call("picture", payer.payload(version=2), prompt="a boat")
    named = {"taskId": bought["structuredContent"]["taskId"]}
    reads = []
    monkeypatch.setattr(gateway.services.output_store, "read", reads.append)
    with contextlib.ExitStack() as others:
        for _ in range(4):
            others.enter_context(gateway.services.find(SdkServer).pictured.counted(agent.client))
            others.enter_context(gateway.services.find(SdkServer).pictured.counted("203.0.113.8"))
        shown = await agent.call("get_task", **named)
        assert types_of(shown) == ["text", "resource_link"]
        assert shown["structuredContent"] == bought["structuredContent"]
    assert reads == []
    monkeypatch.undo()
    assert types_of(await agent.call("get_task", **named)) == ["text", "resource_link", "image"]


async def test_an_address_leaves_pictures_to_the_others(gateway, payer):
    agents = [Agent(gateway, client=f"203.0.113.{number}") for number in (7, 8)]
    bought = await agents[0].call("picture", payer.payload(version=2), prompt="a boat")
    named = {"taskId": bought["structuredContent"]["taskId"]}
    with contextlib.ExitStack() as others:
        for _ in range(4):
            others.enter_context(
                gateway.services.find(SdkServer).pictured.counted(agents[0].client)
            )
        shown = [types_of(await agent.call("get_task", **named)) for agent in agents]
    assert [types[-1] for types in shown] == ["resource_link", "image"]


@pytest.mark.parametrize("tool", ["get_task", "picture", "tasks/get"])
async def test_an_answer_with_pictures_counts_until_it_is_sent(gateway, payer, tool):
    gateway.services.find(SdkServer).pictured = LongPolls(1, 1)
    agent, payment = Agent(gateway, MODERN, TASKS), payer.payload(version=2)
    bought = await agent.call("picture", payment, prompt="a boat")
    named = {"taskId": bought["taskId"]}
    await gateway.wait(named["taskId"])
    slow = _slow_client(agent, tool, named, payment)
    task = asyncio.create_task(gateway.app(slow.scope, slow.receive, slow.send))
    while not slow.sent:  # noqa: ASYNC110 - nothing tells it
        await asyncio.sleep(0.01)
    assert types_of(await agent.call("get_task", **named)) == ["text", "resource_link"]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert types_of(await agent.call("get_task", **named)) == ["text", "resource_link", "image"]


def _slow_client(agent, tool, named, payment) -> Client:
    """A client that asks for a task's picture and never reads the answer."""
    method, params, meta = "tools/call", {"name": tool, "arguments": named}, {}
    if tool == "tasks/get":
        method, params = tool, named
    if tool == "picture":
        params["arguments"], meta = {"prompt": "a boat"}, {"x402/payment": payment}
    head = [
        (b"host", b"gateway.test"),
        (b"content-type", b"application/json"),
        (b"mcp-protocol-version", MODERN.encode()),
        (b"mcp-method", method.encode()),
        (b"mcp-name", tool.encode()),
    ]
    message = json.dumps(agent.message(method, params, meta)).encode()
    asked = Asked(method="POST", path=b"/mcp", headers=head, pieces=[message])
    slow = Client(asked)
    slow.reads, slow.scope = False, asked.scope()
    return slow


def types_of(answer) -> list[str]:
    return [block["type"] for block in answer["content"]]


def _noise() -> bytes:
    """A PNG that does not compress below a megabyte."""
    import io
    import random

    from PIL import Image

    pixels = random.Random(1).randbytes(700 * 700 * 3)
    file = io.BytesIO()
    Image.frombytes("RGB", (700, 700), pixels).save(file, "png")
    return file.getvalue()
