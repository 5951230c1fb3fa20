"""GET /files/…: outputs behind signed links that expire."""

from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from gateway import Output, Result
from tests.conftest import PNG, running
from tests.gateway.web.orders import FILE, order, show


async def fetch(gateway, url, method="GET", **headers):
    split = urlsplit(url)
    asked = f"{split.path}?{split.query}"
    return await gateway.client.open(asked, method=method, headers=headers)


async def test_a_file_is_what_the_provider_made(gateway, payer):
    task = await gateway.wait(await order(gateway, payer))
    answer = await fetch(gateway, task["result"]["outputs"][0]["url"])
    assert answer.status_code == 200
    assert await answer.get_data() == PNG
    assert answer.headers["Content-Type"] == "image/png"
    assert answer.headers.getlist("Content-Disposition") == [
        f'inline; filename="{task["taskId"]}-1.png"'
    ]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Access-Control-Allow-Origin"] == "*"


async def test_a_document_is_text_and_a_markdown_file(gateway, payer, provider):
    provider.script = [Result(text="# Grüße\n")]
    task = await gateway.wait(await order(gateway, payer, slug="paper", **FILE))
    assert task["result"]["text"] == "# Grüße\n"
    (output,) = task["result"]["outputs"]
    assert output["mimeType"] == "text/markdown"
    assert output["bytes"] == len("# Grüße\n".encode())
    answer = await fetch(gateway, output["url"])
    assert answer.headers["Content-Type"].startswith("text/markdown")
    assert (await answer.get_data()).decode() == "# Grüße\n"


@pytest.mark.parametrize(
    ("kind", "served"),
    [
        ("image/jpeg", "image/jpeg"),
        ("image/webp", "image/webp"),
        ("text/html", "application/octet-stream"),
        ("image/svg+xml", "application/octet-stream"),
        ("../../x", "application/octet-stream"),
    ],
)
async def test_only_harmless_kinds_are_served_as_what_they_are(
    gateway, payer, provider, kind, served
):
    provider.script = [Result(outputs=(Output(data=b"<script>", media_type=kind),))]
    task = await gateway.wait(await order(gateway, payer, slug="paper", **FILE))
    (output,) = task["result"]["outputs"]
    assert output["mimeType"] == kind
    answer = await fetch(gateway, output["url"])
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, served)
    use, _, name = answer.headers["Content-Disposition"].partition("; ")
    assert use == ("inline" if served.startswith("image/") else "attachment")
    assert name.startswith(f'filename="{task["taskId"]}-1.')
    assert await answer.get_data() == b"<script>"


def forged_link(url: str, **changes) -> str:
    split = urlsplit(url)
    query = {name: values[0] for name, values in parse_qs(split.query).items()}
    return f"{changes.pop('path', split.path)}?{urlencode(query | changes)}"


async def test_a_link_cannot_be_forged(gateway, payer, settings):
    first, second = [await gateway.wait(await order(gateway, payer)) for _ in range(2)]
    url, other = (task["result"]["outputs"][0]["url"] for task in (first, second))
    later = str(int(parse_qs(urlsplit(url).query)["expires"][0]) + 1)
    forged = [
        forged_link(url, signature="x"),
        forged_link(url, signature=""),
        forged_link(url, signature="é\0"),
        forged_link(url, expires=later),
        forged_link(url, expires=""),
        forged_link(url, path=urlsplit(other).path),
        urlsplit(url).path,
        *(
            forged_link(url, path=f"/files/{path}")
            for path in ("../gateway.db", "%2e%2e/gateway.db", "..%2fgateway.db", "etc/passwd")
        ),
    ]
    for link in forged:
        answer = await gateway.client.get(link)
        assert answer.status_code == 404, link
        assert (await answer.get_json())["code"] == "NOT_FOUND"
    assert (await fetch(gateway, url)).status_code == 200


async def test_a_link_ends_after_some_hours_and_the_next_poll_shows_a_fresh_one(
    gateway, payer, clock
):
    task = await gateway.wait(await order(gateway, payer))
    url = task["result"]["outputs"][0]["url"]
    clock.offset_s = 3_600
    assert (await fetch(gateway, url)).status_code == 200
    clock.offset_s = 3 * 3_600
    assert (await fetch(gateway, url)).status_code == 404
    fresh = (await show(gateway, task["taskId"]))["result"]["outputs"][0]["url"]
    assert (await fetch(gateway, fresh)).status_code == 200


async def test_outputs_are_kept_for_7_days_and_the_task_for_ever(gateway, payer, clock):
    task = await gateway.wait(await order(gateway, payer))
    clock.offset_s = 7 * 86_400 - 3_600
    url = (await show(gateway, task["taskId"]))["result"]["outputs"][0]["url"]
    assert (await fetch(gateway, url)).status_code == 200
    clock.offset_s = 7 * 86_400 + 60
    task = await show(gateway, task["taskId"])
    (output,) = task["result"]["outputs"]
    assert (task["status"], output["expired"], output["url"]) == ("completed", True, None)
    assert output["mimeType"] == "image/png"
    assert (await fetch(gateway, url)).status_code == 404


async def test_tasks_and_links_survive_a_restart(settings, provider, payer):
    async with running(settings, provider) as gateway:
        before = await gateway.wait(await order(gateway, payer))
    async with running(settings, provider) as gateway:
        assert await show(gateway, before["taskId"]) == before
        url = before["result"]["outputs"][0]["url"]
        assert await (await fetch(gateway, url)).get_data() == PNG
