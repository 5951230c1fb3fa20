"""GET and HEAD /files/…: whole files, ranges, and conditional requests."""

import asyncio
import io
import os
from urllib.parse import urlsplit

import pytest
from PIL import Image

from gateway import Output, Result
from tests.conftest import PNG, buy
from tests.gateway.web.orders import FILE, order
from tests.gateway.web.test_files_route import fetch, forged_link
from tests.patience import PATIENCE_S


async def test_a_part_of_a_file_may_be_asked_for(gateway, payer, provider):
    file = io.BytesIO()
    Image.frombytes("RGB", (600, 600), os.urandom(1_080_000)).save(file, "PNG")
    data = file.getvalue()  # a megabyte: several pieces
    provider.script = [Result(outputs=(Output(data=data, media_type="image/png"),))]
    answer = await buy(gateway, payer.header())
    task = await gateway.wait((await answer.get_json())["taskId"])
    url = task["result"]["outputs"][0]["url"].removeprefix("http://gateway.test")
    whole = await gateway.client.get(url)
    assert (whole.status_code, await whole.get_data()) == (200, data)
    part = await gateway.client.get(url, headers={"Range": "bytes=300000-900001"})
    assert (part.status_code, await part.get_data()) == (206, data[300_000:900_002])
    assert part.headers["Content-Range"] == f"bytes 300000-900001/{len(data)}"


@pytest.mark.parametrize(
    ("asked", "status", "content_range", "body"),
    [
        ("bytes=0-0", 206, f"bytes 0-0/{len(PNG)}", PNG[:1]),
        ("bytes=-4", 206, f"bytes {len(PNG) - 4}-{len(PNG) - 1}/{len(PNG)}", PNG[-4:]),
        ("bytes=10-", 206, f"bytes 10-{len(PNG) - 1}/{len(PNG)}", PNG[10:]),
        ("bytes=10-999999", 206, f"bytes 10-{len(PNG) - 1}/{len(PNG)}", PNG[10:]),
        ("bytes=999999-", 416, f"bytes */{len(PNG)}", None),
        ("lines=1-2", 200, None, PNG),
        ("bytes=0-1,4-5", 200, None, PNG),
        ("bytes=5-2", 200, None, PNG),
        ("bytes=-0", 200, None, PNG),
        ("bytes=-999999", 206, f"bytes 0-{len(PNG) - 1}/{len(PNG)}", PNG),
        ("bytes=nonsense", 200, None, PNG),
    ],
)
async def test_every_kind_of_range_is_understood(
    gateway, payer, asked, status, content_range, body
):
    task = await gateway.wait(await order(gateway, payer))
    answer = await fetch(gateway, task["result"]["outputs"][0]["url"], Range=asked)
    assert (answer.status_code, answer.headers.get("Content-Range")) == (status, content_range)
    if body is not None:
        assert await answer.get_data() == body
        assert answer.headers["Content-Type"] == "image/png"


async def raw(gateway, url, method, **headers):
    """Call the app directly: Quart's test client recounts the bytes of a body."""
    split, sent = urlsplit(url), []
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": split.path,
        "raw_path": split.path.encode(),
        "query_string": split.query.encode(),
        "root_path": "",
        "headers": [(b"host", b"gateway.test")]
        + [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }

    asks = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive():
        if not asks:
            await asyncio.Event().wait()  # the client stays
        return asks.pop()

    async def send(message):
        sent.append(message)

    async with asyncio.timeout(PATIENCE_S):
        await gateway.app(scope, receive, send)
    response_headers = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    return (
        sent[0]["status"],
        response_headers,
        b"".join(message.get("body", b"") for message in sent[1:]),
    )


async def test_a_head_tells_of_a_file_without_sending_it(gateway, payer):
    task = await gateway.wait(await order(gateway, payer))
    url = task["result"]["outputs"][0]["url"]
    for asked in ({}, {"Range": "bytes=1-3"}):
        status, response_headers, body = await raw(gateway, url, "HEAD", **asked)
        same = await raw(gateway, url, "GET", **asked)
        assert (status, body) == (same[0], b"")
        assert response_headers["content-length"] == str(len(same[2]))
        assert response_headers["accept-ranges"] == "bytes"
        for name in ("x-request-id",):  # of each request alone
            assert response_headers.pop(name) != same[1].pop(name)
        assert response_headers == same[1]
    status, _, _ = await raw(gateway, forged_link(url, signature="x"), "HEAD")
    assert status == 404


async def test_an_empty_file_is_sent_as_one(gateway, payer, provider):
    empty = Output(data=b"", media_type="application/json")
    provider.script = [Result(text="Words.", outputs=(empty,))]
    task = await gateway.wait(await order(gateway, payer, slug="paper", **FILE))
    (url,) = [one["url"] for one in task["result"]["outputs"] if one["bytes"] == 0]
    assert (await raw(gateway, url, "GET"))[::2] == (200, b"")
    assert (await fetch(gateway, url, Range="bytes=0-9")).status_code == 416


async def test_a_file_that_is_known_already_is_not_sent_again(gateway, payer):
    task = await gateway.wait(await order(gateway, payer))
    url = task["result"]["outputs"][0]["url"]
    tag = (await fetch(gateway, url)).headers["ETag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        answer = await fetch(gateway, url, **{"If-None-Match": known})
        assert (answer.status_code, await answer.get_data()) == (304, b""), known
        assert answer.headers["ETag"] == tag
    answer = await fetch(gateway, url, **{"If-None-Match": '"other"'})
    assert (answer.status_code, await answer.get_data()) == (200, PNG)


async def test_a_part_is_sent_only_of_the_file_it_belongs_to(gateway, payer):
    task = await gateway.wait(await order(gateway, payer))
    url = task["result"]["outputs"][0]["url"]
    tag = (await fetch(gateway, url)).headers["ETag"]
    for only_if, status in ((tag, 206), ('"other"', 200), ("Sat, 21 Nov 2026 00:00:00 GMT", 200)):
        answer = await fetch(gateway, url, **{"If-Range": only_if, "Range": "bytes=0-3"})
        assert answer.status_code == status, only_if


async def test_what_is_beyond_a_file_is_told_in_the_shape_of_every_error(gateway, payer):
    task = await gateway.wait(await order(gateway, payer))
    answer = await fetch(gateway, task["result"]["outputs"][0]["url"], Range="bytes=999-")
    assert answer.status_code == 416
    assert await answer.get_json() == {
        "error": f"The range starts after the end of the file, which has {len(PNG)} bytes.",
        "code": "VALIDATION_ERROR",
    }
