"""What a result holds: pictures up to a megabyte, Markdown up to 25,000 characters, links."""

import json

from gateway import Output, Result
from gateway.contracts import OutputStoreUnavailable


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


def _noise() -> bytes:
    """Return a PNG that cannot be compressed below a megabyte."""
    import io
    import random

    from PIL import Image

    pixels = random.Random(1).randbytes(700 * 700 * 3)
    file = io.BytesIO()
    Image.frombytes("RGB", (700, 700), pixels).save(file, "png")
    return file.getvalue()
