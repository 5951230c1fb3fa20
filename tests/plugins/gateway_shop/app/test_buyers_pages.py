"""The pages of a task and of the purchases, and the button for other sites."""

import json

import attrs
import pytest

from gateway import Transient
from gateway.settings import EndpointOverride
from tests.conftest import running
from tests.gateway.web.orders import order


async def get_text(gateway, path: str) -> str:
    answer = await gateway.client.get(path)
    assert answer.status_code == 200
    assert answer.mimetype == "text/html"
    return await answer.get_data(as_text=True)


# -- the page of a task


async def test_a_task_has_a_page_that_holds_nothing_of_it(gateway, payer, provider):
    done = await order(gateway, payer, prompt="SECRET words of a buyer")
    provider.script = [Transient("MARKER of the vendor")] * 4
    failed = await order(gateway, payer)
    for task_id in (done, failed):
        await gateway.wait(task_id)
    pages = [await get_text(gateway, f"/task/{task_id}") for task_id in (done, failed)]
    assert pages[0] == pages[1]
    for words in ("SECRET", "MARKER", done, payer.account.address):
        assert words not in pages[0]
    assert "A picture" in pages[0]


async def test_a_tasks_page_is_no_matter_for_search_engines(gateway, payer):
    answer = await gateway.client.get(f"/task/{await order(gateway, payer)}")
    assert answer.headers["X-Robots-Tag"] == "noindex"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    robots = await (await gateway.client.get("/robots.txt")).get_data(as_text=True)
    assert {"Disallow: /task/", "Disallow: /purchases"} <= set(robots.splitlines())
    sitemap = await (await gateway.client.get("/sitemap.xml")).get_data(as_text=True)
    assert "/task" not in sitemap


async def test_opening_tasks_counts_as_reading_them(settings, provider, payer):
    limited = attrs.evolve(settings, limit_task="3/60s")
    async with running(limited, provider) as started:
        task_id = await order(started, payer)
        for path in ("/task/", "/api/task/", "/task/"):
            assert (await started.client.get(path + task_id)).status_code == 200
        for path in ("/task/", "/api/task/"):
            assert (await started.client.get(path + task_id)).status_code == 429


async def test_a_task_keeps_its_page_after_its_endpoint_is_gone(settings, provider, payer):
    async with running(settings, provider) as started:
        task_id = await order(started, payer)
    off = attrs.evolve(settings, endpoints={"picture": EndpointOverride(enabled=False)})
    async with running(off, provider) as started:
        assert "A picture" in await get_text(started, f"/task/{task_id}")
    async with running(settings) as started:
        assert "<h1>picture</h1>" in await get_text(started, f"/task/{task_id}")


async def test_the_words_of_an_endpoint_stay_words_on_a_tasks_page(settings, payer, provider):
    evil = '</script><script>alert(1)</script><b title="'
    overrides = {"picture": EndpointOverride(title=evil)}
    async with running(attrs.evolve(settings, endpoints=overrides, name=evil), provider) as started:
        for path in (f"/task/{await order(started, payer)}", "/purchases"):
            text = await get_text(started, path)
            assert "<script>alert" not in text
            assert "<b title" not in text


async def test_a_page_names_the_operators_contact(settings, provider, payer):
    async with running(attrs.evolve(settings, contact_email="me@harbour.example"), provider) as one:
        assert '"contact":"me@harbour.example"' in await get_text(
            one, f"/task/{await order(one, payer)}"
        )


# -- purchases and links


async def test_the_purchases_are_the_same_page_for_everybody(gateway, payer):
    before = await get_text(gateway, "/purchases")
    await order(gateway, payer)
    assert await get_text(gateway, "/purchases") == before
    assert "set-cookie" not in (await gateway.client.get("/purchases")).headers


async def test_a_link_with_a_request_is_the_same_page_and_starts_nothing(gateway, provider):
    plain = await get_text(gateway, "/play/picture")
    for query in ("prompt=a+boat&aspect_ratio=16:9", "prompt=<script>", "prompt=" + "x" * 5_000):
        assert await get_text(gateway, f"/play/picture?{query}") == plain
    counts = await gateway.services.store.counts()
    assert not any(sum(states.values()) for states in counts.values())
    assert provider.requests == []


async def test_agents_learn_how_to_send_a_person_to_a_filled_form(gateway):
    text = await (await gateway.client.get("/llms.txt")).get_data(as_text=True)
    assert "- http://gateway.test/play/{slug}?prompt={prompt}: the form" in text
    assert "- http://gateway.test/task/{taskId}: " in text


# -- the button for other sites


async def test_the_button_is_a_small_script_for_every_site(gateway):
    answer = await gateway.client.get("/button.js")
    script = await answer.get_data(as_text=True)
    assert answer.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert answer.headers["Cache-Control"] == "public, max-age=3600"
    assert "Set-Cookie" not in answer.headers
    assert len(script) < 4_000
    # A plain script without a name of its own in the site's page, and without any request.
    assert script.startswith('"use strict";(()=>{')
    for word in ("fetch", "XMLHttpRequest", "sendBeacon", "cookie", "Storage", "import", "Image"):
        assert word not in script


@pytest.mark.parametrize(
    ("changes", "deploys"),
    [
        ({}, True),
        ({"deployments_per_day": 0}, False),
        ({"erc6492_factories": ()}, False),
        # Not a factory of Base Account.
        ({"erc6492_factories": ("0x" + "12" * 20,)}, False),
        ({"erc6492_factories": ("0xba5ed110efdba3d005bfc882d75358acbbb85842",)}, True),
    ],
)
async def test_a_page_knows_whether_a_new_account_can_pay(settings, provider, changes, deploys):
    async with running(attrs.evolve(settings, **changes), provider) as started:
        page = await get_text(started, "/play/picture")
    data = page.partition('id="page">')[2].partition("</script>")[0]
    assert json.loads(data)["deploysWallets"] is deploys
