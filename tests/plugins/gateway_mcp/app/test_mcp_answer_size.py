"""Clients stop at 1,048,576 characters of an answer: pictures beyond that are links only."""

import io
import json
import random

import pytest
from PIL import Image

from gateway import Output, Result
from tests.plugins.gateway_mcp.app.agent import LEGACY, MODERN, TASKS, Agent

MOST = 1_048_576
OLDEST = "2024-11-05"


def noise(side: int) -> Output:
    """Return a PNG of three bytes a pixel, because noise does not compress."""
    file = io.BytesIO()
    pixels = random.Random(side).randbytes(side * side * 3)
    Image.frombytes("RGB", (side, side), pixels).save(file, "png")
    return Output(data=file.getvalue(), media_type="image/png")


async def bought(agent, payer, tool="picture", price=20_000, **arguments):
    """Buy; return the whole answer's text and its result."""
    meta = {"x402/payment": payer.payload(price, version=2)}
    params = {"name": tool, "arguments": arguments or {"prompt": "noise"}}
    answer = await agent.send(agent.message("tools/call", params, meta))
    text = (await answer.get_data()).decode()
    return text, json.loads(text)["result"]


@pytest.mark.parametrize("version", [MODERN, LEGACY, OLDEST])
@pytest.mark.parametrize(
    ("sides", "shown"),
    [
        ([490], [0]),  # 720 KB, 960,000 characters
        ([550], []),  # 909 KB, 1,210,000 characters
        ([700, 100], [1]),
        ([300, 300, 300, 100], [0, 1, 3]),
        ([100] * 16, list(range(16))),
        ([200] * 16, list(range(6))),
    ],
)
async def test_as_many_pictures_are_shown_as_a_client_takes(
    gateway, payer, provider, version, sides, shown
):
    pictures = tuple(noise(side) for side in sides)
    provider.script = [Result(outputs=pictures)]
    text, result = await bought(Agent(gateway, version), payer)
    assert len(text) < MOST
    kinds = [block["type"] for block in result["content"] if block["type"] != "text"]
    links = ["resource_link"] if version != OLDEST else []
    expected = [links + ["image"] * (number in shown) for number in range(len(sides))]
    assert kinds == [kind for kinds in expected for kind in kinds]
    for output in pictures if version != OLDEST else ():
        assert str(len(output.data)) in text


async def test_a_long_text_leaves_less_room(agent, gateway, payer, provider):
    odd = "A word. " + '\U0001f600\\"\x01' * 8_000
    provider.script = [Result(text=odd, outputs=(noise(400), noise(100)))]
    arguments = {"fileBase64": "eA==", "fileName": "a.txt"}
    text, result = await bought(agent, payer, "paper", 10_000, **arguments)
    assert len(text) < MOST
    assert [block["type"] for block in result["content"]][-3:] == [
        "resource_link", "image", "resource_link",
    ]  # fmt: skip


async def test_a_task_of_the_extension_is_as_short(gateway, payer, provider):
    provider.script = [Result(outputs=(noise(550), noise(400)))]
    agent = Agent(gateway, MODERN, TASKS)
    task = await agent.call("picture", payer.payload(version=2), prompt="noise")
    await gateway.wait(task["taskId"])
    for method, params in (
        ("tasks/get", {"taskId": task["taskId"]}),
        ("tools/call", {"name": "get_task", "arguments": {"taskId": task["taskId"]}}),
    ):
        answer = await agent.send(agent.message(method, params))
        text = (await answer.get_data()).decode()
        assert len(text) < MOST
        assert text.count('"type":"image"') == 1
