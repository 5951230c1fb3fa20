"""The provider for Replicate against the responses in its documentation."""

import attrs
import pytest
import vendor_site
from vendor_site import BOAT, PlainJob, Vendor, raising

import gateway_replicate
from gateway import (
    AccountProblem,
    Cancelling,
    ContentPolicy,
    HandleLost,
    InvalidInput,
    JobFailed,
    Link,
    Pending,
    RateLimited,
    ResultUnusable,
    SubmitUncertain,
    Transient,
)

KEY = "r8_never-to-be-seen"
FLUX = "/v1/models/black-forest-labs/flux-2-pro/predictions"
JOB = "/v1/predictions/gm3qorzdhgbfurvjtvhg6dckhu"
URL = "https://replicate.delivery/xezq/tmpzd16m4x2.png"


class Replicate(Vendor):
    plugin = gateway_replicate
    slug = "replicate-flux-2-pro"

    def settings(self):
        return {"replicate_api_key": KEY, "replicate_base_url": self.url}

    def answer_job(self, *replies):
        self.answers("POST", FLUX, (201, prediction(self, "starting")))
        self.answers("GET", JOB, *replies)


@pytest.fixture
def replicate(httpserver):
    return Replicate(httpserver)


def prediction(site, status, **changes):
    return {
        "id": "gm3qorzdhgbfurvjtvhg6dckhu",
        "model": "black-forest-labs/flux-2-pro",
        "input": {"prompt": "a boat"},
        "output": None,
        "error": None,
        "status": status,
        "data_removed": False,
        "metrics": {},
        "urls": {"get": f"{site.url}{JOB}", "cancel": f"{site.url}{JOB}/cancel"},
    } | changes


# -- offers


def test_nothing_is_on_sale_without_a_key():
    assert vendor_site.on_sale(gateway_replicate) == {}


def test_a_key_puts_our_models_on_sale_and_never_shows(replicate):
    found = replicate.on_sale()
    assert list(found) == [model.slug for model in gateway_replicate.MODELS]
    endpoint, provider = found["replicate-flux-2-pro"]
    prices = {r: endpoint.price_of(attrs.evolve(BOAT, resolution=r)) for r in ("1K", "2K")}
    assert prices == {"1K": 60_000, "2K": 120_000}
    assert isinstance(provider, Cancelling)
    assert not provider.traits.resubmit_after_cancel  # a cancelled prediction is billed
    assert KEY not in repr(provider)


def test_every_model_of_ours_earns_more_than_it_costs():
    for model in gateway_replicate.MODELS:
        assert float(model.price) * 1_000_000 > model.cost_micros


# -- requests


@pytest.mark.parametrize("ratio", ["1:1", "4:3", "3:4", "16:9", "9:16"])
async def test_one_prediction_is_created_and_has_a_deadline(replicate, ratio):
    replicate.answers("POST", FLUX, (201, prediction(replicate, "starting")))
    request = attrs.evolve(BOAT, aspect_ratio=ratio, resolution="2K", output_format="jpg")
    handle = await replicate.submit(request)
    (seen,) = replicate.seen
    assert seen.headers["Authorization"] == f"Bearer {KEY}"
    assert seen.headers["Cancel-After"] == "300s"
    assert seen.json == {
        "input": {
            "prompt": "a boat",
            "aspect_ratio": ratio,
            "output_format": "jpg",
            "resolution": "4 MP",
        }
    }
    assert handle.id == "gm3qorzdhgbfurvjtvhg6dckhu"
    urls = {"poll": f"{replicate.url}{JOB}", "cancel": f"{replicate.url}{JOB}/cancel"}
    assert handle.urls == urls


async def test_a_model_of_one_size_is_asked_for_none(replicate):
    where = "/v1/models/black-forest-labs/flux-schnell/predictions"
    replicate.answers("POST", where, (201, prediction(replicate, "starting")))
    await replicate.submit(attrs.evolve(BOAT, output_format="webp"), "replicate-flux-schnell")
    asked = {"prompt": "a boat", "aspect_ratio": "16:9", "output_format": "webp"}
    assert replicate.seen[0].json == {"input": asked}


async def test_the_shortest_deadline_is_five_seconds(replicate):
    replicate.answers("POST", FLUX, (201, prediction(replicate, "starting")))
    seller = replicate.seller()
    seller.endpoint = attrs.evolve(seller.endpoint, timeout_s=0.5)
    await seller.submit()
    await seller.provider.close()
    assert replicate.seen[0].headers["Cancel-After"] == "5s"


async def test_a_version_the_operator_named_is_asked_for_by_that_name(replicate):
    replicate.answers("POST", "/v1/predictions", (201, prediction(replicate, "starting")))
    model = "alice/boats:9dcd6d78"
    chosen = f"{model}=0.05 like replicate-flux-schnell"
    slug = "replicate-alice-boats-9dcd6d78"
    await replicate.submit(slug=slug, replicate_models=chosen)
    assert replicate.seen[0].json["version"] == model
    assert set(replicate.seen[0].json) == {"input", "version"}


INVALID = {"title": "Input validation failed", "status": 422}


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ((201, "<html>"), SubmitUncertain),
        ((201, []), SubmitUncertain),
        ((201, {"id": "x", "urls": {"get": 5}}), SubmitUncertain),
        ((201, {"urls": {"get": "https://api.replicate.com/x"}}), SubmitUncertain),
        ((400, {"detail": "…"}), InvalidInput),
        ((401, {"title": "Unauthenticated"}), AccountProblem),
        ((402, {"title": "Insufficient credit", "status": 402}), AccountProblem),
        ((404, {"detail": "The requested resource could not be found."}), AccountProblem),
        ((422, INVALID | {"invalid_fields": [{"field": "input.prompt"}]}), InvalidInput),
        ((422, INVALID | {"invalid_fields": [{"field": "input.aspect_ratio"}]}), AccountProblem),
        ((422, INVALID | {"invalid_fields": 5}), InvalidInput),
        ((422, {"title": "Invalid version or not permitted"}), AccountProblem),
        ((422, "no json"), InvalidInput),
        ((429, {"detail": "Request was throttled. Your rate limit resets in ~30s."}), RateLimited),
        ((503, {}), SubmitUncertain),
    ],
)
async def test_a_submit_that_is_refused(replicate, reply, error):
    replicate.answers("POST", FLUX, reply)
    with pytest.raises(error) as raised:
        await replicate.submit()
    assert type(raised.value) is error
    assert len(replicate.seen) == 1
    assert "a boat" not in str(raised.value)


@pytest.mark.parametrize(
    ("body", "headers", "seconds"),
    [
        ({"detail": "Request was throttled. Your rate limit resets in ~30s."}, {}, 30),
        ({"detail": "… resets in ~30s."}, {"Retry-After": "7"}, 7),
        ({"detail": "…"}, {}, 10),
    ],
)
async def test_it_waits_as_long_as_replicate_says(replicate, body, headers, seconds):
    replicate.answers("POST", FLUX, (429, body, headers))
    with pytest.raises(RateLimited) as raised:
        await replicate.submit()
    assert raised.value.retry_after_s == seconds


# -- polling


@pytest.mark.parametrize("output", [URL, [URL, "https://replicate.delivery/b.png"]])
async def test_a_finished_prediction_is_a_link_to_its_picture(replicate, output):
    result = await replicate.poll((200, prediction(replicate, "succeeded", output=output)))
    assert result.outputs == (Link(url=URL, media_type="image/png"),)
    assert len(replicate.asked("POST")) == 1
    assert replicate.asked("GET")[0].headers["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("status", ["starting", "processing", "something-new"])
async def test_a_prediction_that_has_not_ended_is_pending(replicate, status):
    assert await replicate.poll((200, prediction(replicate, status))) == Pending(note=status)


ENDS = {
    "failed": ({"status": "failed", "error": "CUDA out of memory (E1001)"}, JobFailed),
    "failed without a word": ({"status": "failed"}, JobFailed),
    "failed oddly": ({"status": "failed", "error": {"code": 5}}, JobFailed),
    "sensitive": (
        {
            "status": "failed",
            "error": "The input or output was flagged as sensitive. Please try again (E005)",
        },
        ContentPolicy,
    ),
    "nsfw": ({"status": "failed", "error": "NSFW content detected."}, ContentPolicy),
    "canceled": ({"status": "canceled"}, ResultUnusable),
    "aborted": ({"status": "aborted"}, JobFailed),
    "nothing": ({"status": "succeeded", "output": []}, ContentPolicy),
    "null": ({"status": "succeeded"}, ContentPolicy),
    "another kind": ({"status": "succeeded", "output": {"a": 1}}, ContentPolicy),
    "removed": ({"status": "succeeded", "data_removed": True}, HandleLost),
    "no status": ({"status": None}, Transient),
}


@pytest.mark.parametrize("case", ENDS)
async def test_a_prediction_without_a_picture(replicate, case):
    changes, error = ENDS[case]
    with pytest.raises(error) as raised:
        await replicate.poll((200, prediction(replicate, "") | changes))
    assert type(raised.value) is error
    assert len(replicate.asked("POST")) == 1


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ((404, {"detail": "Not found."}), HandleLost),
        ((401, {}), AccountProblem),
        ((429, {"detail": "… resets in ~2s."}), RateLimited),
        ((502, "<html>"), Transient),
        ((200, "nonsense"), Transient),
    ],
)
async def test_a_poll_that_fails(replicate, reply, error):
    with pytest.raises(error) as raised:
        await replicate.poll(reply)
    assert type(raised.value) is error


# -- cancel and health


@pytest.mark.parametrize(
    ("status", "error"), [(200, None), (404, HandleLost), (500, Transient), (401, AccountProblem)]
)
async def test_cancel_returns_once_replicate_has_said_so(replicate, status, error):
    replicate.answers("POST", FLUX, (201, prediction(replicate, "starting")))
    replicate.answers("POST", f"{JOB}/cancel", (status, prediction(replicate, "canceled")))
    endpoint, provider = replicate.on_sale()["replicate-flux-2-pro"]
    handle = await provider.submit(BOAT, PlainJob(endpoint))
    with raising(error):
        await provider.cancel(handle)
    await provider.close()
    assert [request.path for request in replicate.asked("POST")] == [FLUX, f"{JOB}/cancel"]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ((200, {"type": "organization", "username": "acme"}), None),
        ((401, {"title": "Unauthenticated"}), AccountProblem),
        ((503, {}), Transient),
    ],
)
async def test_health_asks_whose_the_token_is(replicate, reply, error):
    replicate.answers("GET", "/v1/account", reply)
    _, provider = replicate.on_sale()["replicate-flux-2-pro"]
    with raising(error):
        await provider.health()
    await provider.close()
    assert replicate.seen[0].headers["Authorization"] == f"Bearer {KEY}"
