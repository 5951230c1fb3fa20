"""The provider for Black Forest Labs against the responses in its documentation."""

import attrs
import pytest
import vendor_site
from vendor_site import BOAT, PlainJob, Vendor, raising

import gateway_bfl
from gateway import (
    AccountProblem,
    Cancelling,
    ContentPolicy,
    Handle,
    HandleLost,
    InvalidInput,
    JobFailed,
    Link,
    Outbound,
    Pending,
    RateLimited,
    SubmitUncertain,
    Transient,
)
from gateway_bfl.models import SIZES

KEY = "bfl_never-to-be-seen"
PRO = "/v1/flux-2-pro"
RESULT = "/v1/get_result"
URL = "https://delivery-eu.bfl.ai/results/a/sample.png?signature=s"


class BlackForestLabs(Vendor):
    plugin = gateway_bfl
    slug = "bfl-flux-2-pro"

    def settings(self):
        return {"bfl_api_key": KEY, "bfl_base_url": self.url}

    def answer_job(self, *replies):
        self.answers("POST", PRO, (200, accepted(self)))
        self.answers("GET", RESULT, *replies)


@pytest.fixture
def bfl(httpserver):
    return BlackForestLabs(httpserver)


def accepted(bfl):
    return {
        "id": "d5ba37dc",
        "polling_url": f"{bfl.url}{RESULT}?id=d5ba37dc",
        "cost": 3.0,
        "input_mp": 0.0,
        "output_mp": 1.0,
    }


def task(status, **changes):
    return 200, {"id": "d5ba37dc", "status": status, "result": None, "details": None} | changes


# -- offers


def test_nothing_is_on_sale_without_a_key():
    assert vendor_site.on_sale(gateway_bfl) == {}


def test_a_key_puts_our_models_on_sale_and_never_shows(bfl):
    found = bfl.on_sale()
    assert list(found) == [model.slug for model in gateway_bfl.MODELS]
    endpoint, provider = found["bfl-flux-2-max"]
    prices = {r: endpoint.price_of(attrs.evolve(BOAT, resolution=r)) for r in ("1K", "2K")}
    assert prices == {"1K": 140_000, "2K": 240_000}
    assert not isinstance(provider, Cancelling)  # there is no way to stop a task
    assert provider.traits.max_concurrency == 20
    assert KEY not in repr(provider)


@pytest.mark.parametrize("model", gateway_bfl.MODELS, ids=lambda model: model.slug)
def test_every_model_of_ours_earns_more_than_it_costs(model):
    first, more = {
        "flux-2-pro": (3, 1.5),
        "flux-2-max": (7, 3),
        "flux-2-klein-9b": (1.5, 0.2),
        # Not by the megapixel: 4.8 cents at 1K, 10 at 2K.
        "flux-3-image": (4.8, 1.8),
    }[model.id]
    assert float(model.price) > (first + more) / 100  # 1024² is a little more than a megapixel
    assert float(model.prices["2K"]) > (first + 3 * more) / 100


@pytest.mark.parametrize(("ratio", "resolution"), SIZES)
def test_every_size_has_its_ratio_and_sides_the_models_take(ratio, resolution):
    width, height = SIZES[ratio, resolution]
    across, down = map(int, ratio.split(":"))
    assert width * down == height * across
    assert width % 16 == height % 16 == 0
    assert width * height <= 4_000_000


# -- requests


@pytest.mark.parametrize(("ratio", "resolution"), SIZES)
async def test_one_task_is_begun_in_pixels(bfl, ratio, resolution):
    bfl.answers("POST", PRO, (200, accepted(bfl)))
    request = attrs.evolve(BOAT, aspect_ratio=ratio, resolution=resolution, output_format="jpg")
    handle = await bfl.submit(request)
    (seen,) = bfl.seen
    width, height = SIZES[ratio, resolution]
    assert seen.headers["x-key"] == KEY
    assert seen.json == {
        "prompt": "a boat",
        "width": width,
        "height": height,
        "output_format": "jpeg",
    }
    urls = {"poll": f"{bfl.url}{RESULT}?id=d5ba37dc"}
    assert handle == Handle(id="d5ba37dc", urls=urls, facts={"cost": "3.0"})


# Kind of evidence: a third party's client of POST /v1/flux-3-image (GitHub, read 2026-11-22): a
# ratio and a resolution in lower case, "and nothing else".
async def test_flux_3_is_asked_by_ratio_and_resolution(bfl):
    bfl.answers("POST", "/v1/flux-3-image", (200, accepted(bfl)))
    await bfl.submit(attrs.evolve(BOAT, resolution="2K"), slug="bfl-flux-3-image")
    assert bfl.seen[0].json == {"prompt": "a boat", "aspect_ratio": "16:9", "resolution": "2k"}


async def test_webp_is_asked_as_png_which_the_gateway_converts(bfl):
    bfl.answers("POST", PRO, (200, accepted(bfl)))
    await bfl.submit(attrs.evolve(BOAT, output_format="webp"))
    assert bfl.seen[0].json["output_format"] == "png"


async def test_a_model_the_operator_added_is_asked_in_one_size(bfl):
    bfl.answers("POST", "/v1/flux-3-pro", (200, accepted(bfl)))
    chosen = "flux-3-pro=0.10 like bfl-flux-2-pro"
    await bfl.submit(slug="bfl-flux-3-pro", bfl_models=chosen)
    assert (bfl.seen[0].json["width"], bfl.seen[0].json["height"]) == (1280, 720)
    assert bfl.on_sale(bfl_models=chosen)["bfl-flux-3-pro"][0].resolution.values == ("1K",)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ((200, "<html>"), SubmitUncertain),
        ((200, []), SubmitUncertain),
        ((200, {"id": "d5ba37dc"}), SubmitUncertain),
        ((200, {"id": 5, "polling_url": "https://api.bfl.ai/v1/get_result"}), SubmitUncertain),
        ((200, {"id": "d5ba37dc", "polling_url": None}), SubmitUncertain),
        ((400, {"error": "validation_error"}), InvalidInput),
        ((401, {"error": "invalid_api_key"}), AccountProblem),
        ((402, {"error": "insufficient_credits"}), AccountProblem),
        ((403, {"detail": "Not authenticated"}), AccountProblem),
        ((404, {"detail": "Not Found"}), AccountProblem),
        ((422, {"detail": [{"loc": ["body", "prompt"], "type": "missing"}]}), InvalidInput),
        ((422, {"detail": [{"loc": ["body", "width"], "type": "less_than"}]}), AccountProblem),
        ((429, {"error": "rate_limit_exceeded", "retry_after": 5}), RateLimited),
        ((500, {}), SubmitUncertain),
        ((503, "maintenance"), SubmitUncertain),
    ],
)
async def test_a_submit_that_is_refused(bfl, reply, error):
    bfl.answers("POST", PRO, reply)
    with pytest.raises(error) as raised:
        await bfl.submit()
    assert type(raised.value) is error
    assert len(bfl.seen) == 1
    assert "a boat" not in str(raised.value)


@pytest.mark.parametrize(
    ("body", "headers", "seconds"),
    [
        ({"retry_after": 5}, {}, 5),
        ({"retry_after": 5}, {"Retry-After": "7"}, 7),
        ({"retry_after": "soon"}, {}, 10),
    ],
)
async def test_it_waits_as_long_as_the_api_says(bfl, body, headers, seconds):
    bfl.answers("POST", PRO, (429, body, headers))
    with pytest.raises(RateLimited) as raised:
        await bfl.submit()
    assert raised.value.retry_after_s == seconds


# -- polling


async def test_a_finished_task_is_a_link_and_what_it_cost(bfl):
    result = await bfl.poll(task("Ready", result={"sample": URL, "seed": 1}, cost=4.5))
    assert result.outputs == (Link(url=URL, media_type="image/png"),)
    assert result.cost_micros == 45_000
    assert len(bfl.asked("POST")) == 1
    (asked,) = bfl.asked("GET")
    assert asked.args["id"] == "d5ba37dc"
    assert asked.headers["x-key"] == KEY


async def test_the_cost_that_only_the_submit_told_is_kept(bfl):
    result = await bfl.poll(task("Ready", result={"sample": URL}))
    assert result.cost_micros == 30_000


async def test_a_cost_that_is_not_told_is_none(bfl):
    bfl.answers("POST", PRO, (200, accepted(bfl) | {"cost": None}))
    bfl.answers("GET", RESULT, task("Ready", result={"sample": URL}))
    seller = bfl.seller()
    seller.handle = await seller.submit()
    assert seller.handle.facts == {}
    assert (await seller.poll()).cost_micros is None
    await seller.provider.close()


@pytest.mark.parametrize(
    ("reply", "pending"),
    [
        (task("Pending"), Pending(note="Pending")),
        (task("Pending", progress=0.4), Pending(progress=0.4, note="Pending")),
        (task("Generating"), Pending(note="Generating")),
    ],
)
async def test_a_task_that_has_not_ended_is_pending(bfl, reply, pending):
    assert await bfl.poll(reply) == pending


ENDS = {
    "prompt moderated": (task("Request Moderated"), ContentPolicy),
    "picture moderated": (task("Content Moderated"), ContentPolicy),
    "policy": (task("Error", error="content_policy_violation"), ContentPolicy),
    "timeout": (task("Error", error="generation_timeout"), JobFailed),
    "their error": (task("Error", details={"error": "internal_error"}), JobFailed),
    "error": (task("Error"), JobFailed),
    "failed": (task("Failed"), JobFailed),
    "unknown": (task("Task not found"), HandleLost),
    "unknown, by HTTP": ((404, {"detail": "Not Found"}), HandleLost),
    "nothing": (task("Ready"), ContentPolicy),
    "no address": (task("Ready", result={"sample": 5}), ContentPolicy),
    "no status": (task(None), Transient),
    "nonsense": ((200, "nonsense"), Transient),
    "key": ((403, {}), AccountProblem),
    "credit": ((402, {}), AccountProblem),
    "hurried": ((429, {}), RateLimited),
    "broken": ((500, {}), Transient),
}


@pytest.mark.parametrize("case", ENDS)
async def test_a_task_without_a_picture(bfl, case):
    reply, error = ENDS[case]
    with pytest.raises(error) as raised:
        await bfl.poll(reply)
    assert type(raised.value) is error
    assert len(bfl.asked("POST")) == 1


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://api.bfl.ai.evil.example/v1/get_result?id=1", "a host that is not its own"),
        ("http://api.eu.bfl.ai/v1/get_result?id=1", "not plain https"),
    ],
)
async def test_the_key_goes_to_no_other_host(bfl, url, reason):
    endpoint, provider = bfl.on_sale(bfl_base_url="https://api.bfl.ai")["bfl-flux-2-pro"]
    with pytest.raises(Transient, match=reason):
        await provider.poll(Handle(id="1", urls={"poll": url}), PlainJob(endpoint))
    await provider.close()


def test_tasks_may_be_asked_for_in_the_region_that_has_them(bfl):
    _, provider = bfl.on_sale()["bfl-flux-2-pro"]
    assert isinstance(provider.outbound, Outbound)
    assert provider.outbound.hosts == ("*.bfl.ai",)


# -- health


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ((200, {"credits": 950.5}), None),
        ((200, {"something": "else"}), None),  # the shape is not documented
        ((200, {"credits": 0}), AccountProblem),
        ((403, {}), AccountProblem),
        ((503, {}), Transient),
    ],
)
async def test_health_asks_how_many_credits_are_left(bfl, reply, error):
    bfl.answers("GET", "/v1/credits", reply)
    _, provider = bfl.on_sale()["bfl-flux-2-pro"]
    with raising(error):
        await provider.health()
    await provider.close()
    assert bfl.seen[0].headers["x-key"] == KEY
