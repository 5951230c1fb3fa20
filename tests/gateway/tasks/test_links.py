"""Links from an API: fetched at once, retried, renewed by a poll; never made again."""

import asyncio
import re

import attrs
import pytest
import structlog
from pytest_httpserver import HTTPServer
from werkzeug import Response

from gateway import Link, Outbound, Output, Result, Transient
from tests.conftest import PNG
from tests.gateway.vendors.certificates import Authority
from tests.gateway.vendors.conftest import names  # noqa: F401 - a fixture
from tests.patience import until
from tests.unit.tasks.engine_shop import ENDPOINT, PAPER, JobApi, PlainApi, opened

HOST = "cdn.example"
FOLDER = "https://cdn.example"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def site(authority, names):  # noqa: F811 - the fixture
    names[HOST] = ["127.0.0.1"]
    with HTTPServer(ssl_context=authority.server(HOST), threaded=True) as server:
        yield server


@pytest.fixture
def links(authority):
    return Outbound("https://outputs.invalid", tls=authority.client(), max_bytes=100_000)


def linked(site, *paths, host=HOST):
    """Return a result with links to these paths."""
    return Result(
        outputs=tuple(
            Link(url=f"https://{host}:{site.port}{path}", media_type="image/png") for path in paths
        )
    )


def asked(site):
    return [request.path for request, _ in site.log]


async def test_a_linked_picture_is_fetched_looked_at_and_kept(tmp_path, clock, site, links):
    site.expect_request("/a.png").respond_with_data(PNG)
    async with opened(tmp_path, PlainApi(linked(site, "/a.png")), clock, links=links) as shop:
        task = await shop.ended(await shop.accept(ENDPOINT))
        (output,) = task.result.outputs
        assert (shop.folder / output.key).read_bytes() == PNG
    assert (task.status, output.media_type, output.width) == ("completed", "image/png", 1)


async def test_a_link_that_fails_twice_is_fetched_the_third_time(tmp_path, clock, site, links):
    answers = [Response(status=503), Response(status=404), Response(PNG)]
    site.expect_request("/a.png").respond_with_handler(lambda _: answers.pop(0))
    api = PlainApi(linked(site, "/a.png"))
    async with opened(tmp_path, api, clock, links=links) as shop:
        assert (await shop.ended(await shop.accept(PAPER))).status == "completed"
    assert (len(api.submits), len(site.log)) == (1, 3)


async def test_a_dead_link_is_owed_back_and_nothing_is_made_again(tmp_path, clock, site, links):
    site.expect_request("/a.png").respond_with_data("gone", 410)
    api = PlainApi(linked(site, "/a.png"), idempotent_submit=True)
    async with opened(tmp_path, api, clock, links=links) as shop:
        task = await shop.ended(await shop.accept(PAPER))
    assert (task.details, task.refund.amount_units) == ("provider_error", 20_000)
    assert (len(api.submits), len(site.log)) == (1, 3)
    assert "410" in task.error


async def test_a_link_that_died_is_given_afresh_by_the_next_poll(tmp_path, clock, site, links):
    site.expect_request("/old.png").respond_with_data("expired", 403)
    site.expect_request("/new.png").respond_with_data(PNG)
    api = JobApi()
    api.to_poll = [linked(site, "/old.png"), linked(site, "/new.png")]
    async with opened(tmp_path, api, clock, links=links) as shop:
        task = await shop.ended(await shop.accept(ENDPOINT))
    assert (task.status, task.attempt, len(api.submits)) == ("completed", 1, 1)
    assert asked(site) == ["/old.png"] * 3 + ["/new.png"]


async def test_a_job_whose_links_stay_dead_is_polled_three_times(tmp_path, clock, site, links):
    site.expect_request("/a.png").respond_with_data("gone", 404)
    api = JobApi()
    api.usual = linked(site, "/a.png")
    async with opened(tmp_path, api, clock, links=links) as shop:
        task = await shop.ended(await shop.accept(PAPER))
    assert (task.details, task.attempt) == ("provider_error", 1)
    assert (len(api.submits), len(api.polls), len(site.log)) == (1, 3, 9)


@pytest.mark.parametrize(
    "url",
    [
        "http://cdn.example/a.png",
        "https://10.0.0.1/a.png",
        "https://169.254.169.254/latest/meta-data",
        "https://localhost/a.png",
        "https://u:p@cdn.example/a.png",
        "https://" + "a" * 70 + ".example/",
        "https://a..b/",
        "https://[",
        "https://cdn.example:99999/",
        "https://\ud800.example/",
        "file:///etc/passwd",
        "",
        None,
        5,
    ],
    ids=repr,
)
async def test_a_link_that_leads_nowhere_good_is_not_made_again(tmp_path, clock, site, links, url):
    api = PlainApi(Result(outputs=(Link(url=url),)), idempotent_submit=True)
    async with opened(tmp_path, api, clock, links=links) as shop:
        task = await shop.ended(await shop.accept(PAPER))
    assert (task.details, len(api.submits), site.log) == ("provider_error", 1, [])


async def test_an_oversized_link_is_cut_off(tmp_path, clock, site, links):
    site.expect_request("/a.png").respond_with_data(b"x" * 200_000)
    api = PlainApi(linked(site, "/a.png"))
    async with opened(tmp_path, api, clock, links=links) as shop:
        task = await shop.ended(await shop.accept(PAPER))
    assert (task.details, len(api.submits)) == ("provider_error", 1)
    assert (task.error, asked(site)) == (
        "The result was made, but is larger than what is sold.",
        ["/a.png"],
    )


async def test_links_that_are_too_much_together_are_not_all_fetched(
    tmp_path, clock, site, links, monkeypatch
):
    """A gigabyte in sixteen pieces is never in memory at once."""
    monkeypatch.setattr("gateway.tasks.delivery.MAX_RESULT_BYTES", 150_000)
    site.expect_request(re.compile("/.*")).respond_with_data(b"x" * 90_000)
    api = PlainApi(*[linked(site, *(f"/{n}.png" for n in range(10)))] * 4)
    async with opened(tmp_path, api, clock, links=links) as shop:
        task = await shop.ended(await shop.accept(PAPER))
    assert task.details == "provider_error"
    assert set(asked(site)) == {"/0.png", "/1.png"}


async def test_a_link_to_a_page_is_not_made_anew(tmp_path, clock, site, links):
    site.expect_request("/a.png").respond_with_data("<html>Sorry</html>")
    api = PlainApi(*[linked(site, "/a.png")] * 4)
    async with opened(tmp_path, api, clock, links=links) as shop:
        task = await shop.ended(await shop.accept(ENDPOINT))
    assert (task.details, len(api.submits), task.payment.state) == (
        "provider_error",
        1,
        "refund_due",
    )
    assert "cannot be decoded" in task.error


async def test_a_job_that_links_to_a_page_is_polled_for_a_fresh_link(tmp_path, clock, site, links):
    site.expect_request("/a.png").respond_with_data("<html>Sorry</html>")
    site.expect_request("/b.png").respond_with_data(PNG)
    api = JobApi()
    api.to_poll = [linked(site, "/a.png"), linked(site, "/b.png")]
    async with opened(tmp_path, api, clock, links=links) as shop:
        task = await shop.ended(await shop.accept(ENDPOINT))
    assert (task.status, len(api.submits), asked(site)) == ("completed", 1, ["/a.png", "/b.png"])


async def test_bytes_and_links_may_come_together(tmp_path, clock, site, links):
    site.expect_request("/a.png").respond_with_data(PNG)
    mixed = Result(
        outputs=(Output(data=b"{}", media_type="application/json"), *linked(site, "/a.png").outputs)
    )
    async with opened(tmp_path, PlainApi(mixed), clock, links=links) as shop:
        task = await shop.ended(await shop.accept(PAPER))
    assert [one.media_type for one in task.result.outputs] == ["application/json", "image/png"]


async def test_a_failed_download_tells_the_log_no_address(tmp_path, clock, site, links):
    site.expect_request("/secret-token.png").respond_with_data("gone", 410)
    with structlog.testing.capture_logs() as lines:
        async with opened(
            tmp_path, PlainApi(linked(site, "/secret-token.png")), clock, links=links
        ) as shop:
            await shop.ended(await shop.accept(PAPER))
    assert any(line["event"] == "output.not_fetched" for line in lines)
    assert "secret-token" not in str(lines)


async def test_links_are_asked_for_again_after_a_restart(tmp_path, clock, site, links):
    """The bytes were never stored: the job is polled again."""
    api = JobApi()
    api.usual = linked(site, "/a.png")
    site.expect_request("/a.png").respond_with_data(PNG)
    async with opened(tmp_path, api, clock, links=Down()) as shop:
        task_id = await shop.accept(PAPER)
        await shop.pool.resources.links.reached.wait()
        await shop.crash()
    async with opened(tmp_path, api, clock, links=links) as shop:
        assert (await shop.ended(task_id)).status == "completed"
    assert len(api.submits) == 1


@pytest.mark.parametrize("kind", [JobApi, PlainApi])
async def test_links_that_hang_keep_no_other_vendor_waiting(tmp_path, clock, kind):
    down, slow = Down(), kind()
    slow.usual = hanging = Result(outputs=(Link(url="https://cdn.example/1"),))
    slow.script = [hanging] * 2
    async with opened(tmp_path, slow, clock, links=down, workers=2, start=False) as shop:
        other = attrs.evolve(PAPER, slug="other")
        shop.catalog.register(other, PlainApi(), "other")
        shop.pool.start()
        await shop.sold(2)
        await until(lambda: down.asked == 2)
        assert (await shop.ended(await shop.accept(other))).status == "completed"


class Down:
    """Downloads that never end."""

    asked = 0

    def __init__(self):
        self.reached, self.never = asyncio.Event(), asyncio.Event()

    async def download(self, url, timeout_s):
        self.asked += 1
        self.reached.set()
        await self.never.wait()
        raise Transient(url)

    async def close(self):
        pass
