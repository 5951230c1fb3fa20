"""The provider for fal.ai against the responses in its documentation."""

import attrs
import pytest
import vendor_site
from vendor_site import BOAT, PlainJob, Vendor, raising

import gateway_fal
from gateway import (
    AccountProblem,
    Cancelling,
    ContentPolicy,
    GenerationRequest,
    HandleLost,
    InvalidInput,
    JobFailed,
    Link,
    NotAccepted,
    Pending,
    Polling,
    Probing,
    RateLimited,
    SettingsError,
    SubmitUncertain,
    Transient,
)

KEY = "id:never-to-be-seen"
MODEL = "/fal-ai/nano-banana-2"
JOB = f"{MODEL}/requests/764cabcf"
PICTURE = {"url": "https://v3.fal.media/files/a.png", "content_type": "image/png", "width": 1344}
DONE = {"status": "COMPLETED", "request_id": "764cabcf", "metrics": {"inference_time": 3.4}}


class Fal(Vendor):
    plugin = gateway_fal
    slug = "fal-nano-banana-2"

    def settings(self):
        return {"fal_api_key": KEY, "fal_base_url": self.url, "fal_platform_url": self.url}

    def answer_job(self, *statuses, response=None):
        self.answers("POST", MODEL, (200, accepted(self)))
        self.answers("GET", f"{JOB}/status", *statuses)
        if response is not None:
            self.answers("GET", JOB, response)


@pytest.fixture
def fal(httpserver):
    return Fal(httpserver)


def accepted(fal):
    return {
        "request_id": "764cabcf",
        "status": "IN_QUEUE",
        "queue_position": 0,
        "status_url": f"{fal.url}{JOB}/status",
        "response_url": f"{fal.url}{JOB}",
        "cancel_url": f"{fal.url}{JOB}/cancel",
    }


# -- offers


def test_nothing_is_on_sale_without_a_key():
    assert vendor_site.on_sale(gateway_fal) == {}


def test_a_key_puts_our_models_on_sale_and_never_shows(fal):
    found = fal.on_sale()
    assert list(found) == [model.slug for model in gateway_fal.MODELS]
    endpoint, provider = found["fal-nano-banana-2"]
    assert endpoint.output_format.values == ("png", "jpg", "webp")
    prices = {r: endpoint.price_of(attrs.evolve(BOAT, resolution=r)) for r in ("1K", "2K", "4K")}
    assert prices == {"1K": 120_000, "2K": 180_000, "4K": 240_000}
    assert isinstance(provider, Polling | Cancelling | Probing)
    assert not provider.traits.resubmit_after_cancel  # a running job may still be made
    assert KEY not in repr(provider)


def test_every_model_of_ours_earns_more_than_it_costs():
    for model in gateway_fal.MODELS:
        assert float(model.price) * 1_000_000 > model.cost_micros


@pytest.mark.parametrize(
    "chosen",
    [
        "fal-flux-dev, fal-ai/flux-9=0.07 like fal-flux-dev",  # from the environment
        ["fal-flux-dev", "fal-ai/flux-9 = 0.07 like fal-flux-dev", "fal-flux-dev"],  # the file
    ],
)
def test_the_operator_chooses_models_and_adds_one(fal, chosen):
    found = fal.on_sale(fal_models=chosen)
    assert list(found) == ["fal-flux-dev", "fal-ai-flux-9"]
    assert found["fal-ai-flux-9"][0].price_units == 70_000
    assert found["fal-ai-flux-9"][0].model == "fal-ai/flux-9"


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        ("fal-ai/flux-9", "is not known and has no price"),
        ("fal-ai/flux-9=free", "not a USDC amount"),
        ("fal-ai/flux-9=0", "positive"),
        ("fal-ai/flux-9=0.1 like fal-flux-8", "'fal-flux-8' after `like`"),
        ("fal-flux-dev=0.1", "[endpoints.fal-flux-dev]"),
        (" , ", "is empty"),
    ],
)
def test_a_model_that_cannot_be_sold_is_one_clear_sentence(fal, chosen, says):
    with pytest.raises(SettingsError) as error:
        fal.on_sale(fal_models=chosen)
    assert says in str(error.value)
    assert "GATEWAY_FAL_MODELS" in str(error.value)


def test_limits_are_the_operators(fal):
    values = {"fal_max_concurrency": "7", "fal_submits_per_minute": "30"}
    _, provider = fal.on_sale(**values)["fal-flux-dev"]
    assert (provider.traits.max_concurrency, provider.traits.submits_per_minute) == (7, 30)
    _, provider = fal.on_sale(fal_max_concurrency="0")["fal-flux-dev"]
    assert provider.traits.max_concurrency is None
    with pytest.raises(SettingsError, match="GATEWAY_FAL_MAX_CONCURRENCY"):
        fal.on_sale(fal_max_concurrency="-1")


# -- requests


async def test_one_job_is_submitted_and_its_addresses_are_kept(fal):
    fal.answers("POST", MODEL, (200, accepted(fal)))
    handle = await fal.submit(attrs.evolve(BOAT, resolution="4K", output_format="jpg"))
    (request,) = fal.seen
    assert request.headers["Authorization"] == f"Key {KEY}"
    assert request.headers["x-fal-no-retry"] == "1"
    assert request.headers["x-fal-request-timeout"] == "300"
    assert request.json == {
        "prompt": "a boat",
        "aspect_ratio": "16:9",
        "output_format": "jpeg",
        "resolution": "4K",
    }
    assert handle.id == "764cabcf"
    assert handle.urls == {
        "status": f"{fal.url}{JOB}/status",
        "response": f"{fal.url}{JOB}",
        "cancel": f"{fal.url}{JOB}/cancel",
    }


@pytest.mark.parametrize(
    ("ratio", "size"),
    [
        ("1:1", "square_hd"),
        ("4:3", "landscape_4_3"),
        ("3:4", "portrait_4_3"),
        ("16:9", "landscape_16_9"),
        ("9:16", "portrait_16_9"),
    ],
)
async def test_a_model_with_sizes_is_asked_for_one(fal, ratio, size):
    fal.answers("POST", "/fal-ai/flux/dev", (200, accepted(fal)))
    await fal.submit(
        GenerationRequest(prompt="p", aspect_ratio=ratio, output_format="webp"),
        "fal-flux-dev",
    )
    assert fal.seen[0].json == {"prompt": "p", "image_size": size, "output_format": "png"}


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ((200, "<html>"), SubmitUncertain),
        ((200, []), SubmitUncertain),
        ((200, {"request_id": "764cabcf"}), SubmitUncertain),
        ((200, {"request_id": 5, "status_url": "https://a", "response_url": 7}), SubmitUncertain),
        ((401, {"detail": "Cannot access application"}), AccountProblem),
        ((403, {"detail": "User is locked. Reason: Exhausted balance."}), AccountProblem),
        ((404, {"detail": "Application not found"}), AccountProblem),
        ((429, {"detail": "Too many requests"}, {"Retry-After": "3"}), RateLimited),
        ((422, {"detail": [{"loc": ["body", "prompt"], "type": "missing"}]}), InvalidInput),
        ((422, {"detail": [{"loc": ["body", "resolution"], "type": "one_of"}]}), AccountProblem),
        ((422, {"detail": [{"type": "content_policy_violation"}]}), ContentPolicy),
        ((422, "no json"), InvalidInput),
        ((408, {}), SubmitUncertain),
        ((503, {"detail": "overloaded"}), NotAccepted),
    ],
)
async def test_a_submit_that_is_refused(fal, reply, error):
    fal.answers("POST", MODEL, reply)
    with pytest.raises(error) as raised:
        await fal.submit()
    assert type(raised.value) is error
    assert len(fal.asked("POST")) == 1
    assert "a boat" not in str(raised.value)


# -- polling


async def test_a_finished_job_is_a_link_to_its_picture(fal):
    result = await fal.poll((200, DONE), response=(200, {"images": [PICTURE], "seed": 5}))
    assert result.outputs == (Link(url=PICTURE["url"], media_type="image/png"),)
    assert len(fal.asked("POST")) == 1
    assert {request.headers["Authorization"] for request in fal.seen} == {f"Key {KEY}"}


@pytest.mark.parametrize(
    ("status", "note"),
    [
        ({"status": "IN_QUEUE", "queue_position": 2}, "2 before it in fal's queue"),
        ({"status": "IN_QUEUE"}, "IN_QUEUE"),
        ({"status": "IN_PROGRESS", "logs": []}, "IN_PROGRESS"),
        ({"status": "PAUSED_BY_SOMETHING_NEW"}, "PAUSED_BY_SOMETHING_NEW"),
    ],
)
async def test_a_job_that_has_not_ended_is_pending(fal, status, note):
    assert await fal.poll((202, status)) == Pending(note=note)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ((404, {"detail": "Request not found"}), HandleLost),
        ((401, {}), AccountProblem),
        ((403, {"detail": "User is locked. Reason: Exhausted balance."}), AccountProblem),
        ((429, {}), RateLimited),
        ((500, {}), Transient),
        ((200, "nonsense"), Transient),
        ((200, {"state": "COMPLETED"}), Transient),
    ],
)
async def test_a_poll_that_fails(fal, reply, error):
    with pytest.raises(error) as raised:
        await fal.poll(reply)
    assert type(raised.value) is error


def of_type(kind, loc="prompt"):
    return {"detail": [{"loc": ["body", loc], "msg": "…", "type": kind}]}


OUTCOMES = {
    "moderated": ((422, of_type("content_policy_violation")), ContentPolicy),
    "no media": ((422, of_type("no_media_generated")), ContentPolicy),
    "prompt too long": ((422, of_type("sequence_too_long")), InvalidInput),
    "our size": ((422, of_type("one_of", "image_size")), AccountProblem),
    "model broke": ((500, of_type("internal_server_error")), JobFailed),
    "model took too long": ((504, of_type("generation_timeout")), JobFailed),
    "their upstream": ((400, of_type("downstream_service_error")), JobFailed),
    "timed out": ((504, {"detail": "…", "error_type": "request_timeout"}), JobFailed),
    "no runner": ((503, {"detail": "…", "error_type": "runner_scheduling_failure"}), JobFailed),
    "cancelled": ((499, {"detail": "…", "error_type": "client_cancelled"}), JobFailed),
    "bad request": ((400, {"detail": "…", "error_type": "bad_request"}), InvalidInput),
    "marked": ((500, "oops", {"X-Fal-Error-Type": "runner_server_error"}), JobFailed),
    "retryable": ((503, "oops", {"X-Fal-Retryable": "true"}), JobFailed),
    # docs.fal.ai/errors (read 2026-11): "Not all endpoints strictly follow the format".
    "refused in a sentence": ((422, {"detail": "Flagged by our content policy."}), ContentPolicy),
    "input in a sentence": ((422, {"detail": "prompt is too odd"}), InvalidInput),
    "input in a sentence, 400": ((400, {"detail": "a boat?"}), InvalidInput),
    "broke in a sentence": ((500, {"detail": "Internal Server Error"}), JobFailed),
    # fal-client 1.0.3, `_is_ingress_error`: an answer with this header is fal's own.
    "broke, with an id": ((500, "oops", {"x-fal-request-id": "764cabcf"}), JobFailed),
    "too early": ((400, {"detail": "Request is still in progress"}), Transient),
    "a proxy's 400": ((400, "<html>"), Transient),
    "the queue, in JSON": ((503, {"detail": "overloaded"}), Transient),
    "the queue itself": ((502, "<html>bad gateway</html>"), Transient),
    "gone": ((404, {"detail": "Request not found"}), HandleLost),
    "gone, marked": ((404, "", {"X-Fal-Error-Type": "not_found"}), HandleLost),
    "locked": ((403, {"detail": "User is locked."}), AccountProblem),
    "hurried": ((429, {"detail": "…", "error_type": "rate_limited"}), RateLimited),
    "empty": ((200, {"images": []}), ContentPolicy),
    "nothing": ((200, {}), ContentPolicy),
    "no address": ((200, {"images": [{"url": 5}]}), ContentPolicy),
    # vercel/ai's schema of fal's answers (2026-08) has both names.
    "blacked out, lora": (
        (200, {"images": [PICTURE], "nsfw_content_detected": [True]}),
        ContentPolicy,
    ),
    "blacked out": ((200, {"images": [PICTURE], "has_nsfw_concepts": [True]}), ContentPolicy),
}


@pytest.mark.parametrize("case", OUTCOMES)
async def test_a_job_that_ended_without_a_picture(fal, case):
    response, error = OUTCOMES[case]
    with pytest.raises(error) as raised:
        await fal.poll((200, DONE), response=response)
    assert type(raised.value) is error
    assert len(fal.asked("POST")) == 1


async def test_a_status_that_tells_an_error_makes_a_bare_500_the_jobs(fal):
    with pytest.raises(JobFailed):
        await fal.poll((200, DONE | {"error": "Internal Server Error"}), response=(500, "oops"))


async def test_a_refusal_in_a_sentence_is_one_whatever_the_status_calls_it(fal):
    response = (422, {"detail": "This was flagged as NSFW."})
    with pytest.raises(ContentPolicy):
        await fal.poll((200, DONE | {"error": "Unprocessable Entity"}), response=response)


async def test_a_status_may_be_the_only_one_to_tell_the_kind_of_error(fal):
    with pytest.raises(InvalidInput):
        await fal.poll((200, DONE | {"error_type": "bad_request"}), response=(500, "oops"))


async def test_a_response_that_cannot_be_had_now_is_asked_for_again(fal):
    fal.answers("POST", MODEL, (200, accepted(fal)))
    fal.answers("GET", f"{JOB}/status", (200, DONE))
    fal.answers("GET", JOB, (502, ""), (200, {"images": [PICTURE]}))
    endpoint, provider = fal.on_sale()["fal-nano-banana-2"]
    job = PlainJob(endpoint)
    handle = await provider.submit(BOAT, job)
    with pytest.raises(Transient):
        await provider.poll(handle, job)
    assert (await provider.poll(handle, job)).outputs[0].url == PICTURE["url"]
    await provider.close()
    assert len(fal.asked("POST")) == 1


# -- cancel and health


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ((202, {"status": "CANCELLATION_REQUESTED"}), None),
        ((400, {"status": "ALREADY_COMPLETED"}), None),
        ((404, {"status": "NOT_FOUND"}), HandleLost),
        ((500, {}), Transient),
    ],
)
async def test_cancel_returns_once_fal_has_said_so(fal, reply, error):
    fal.answers("POST", MODEL, (200, accepted(fal)))
    fal.answers("PUT", f"{JOB}/cancel", reply)
    endpoint, provider = fal.on_sale()["fal-nano-banana-2"]
    handle = await provider.submit(BOAT, PlainJob(endpoint))
    with raising(error):
        await provider.cancel(handle)
    await provider.close()
    assert len(fal.asked("PUT")) == 1


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ((200, {"prices": [{"unit_price": 0.08}]}), None),
        ((401, {"error": {"type": "authorization_error"}}), AccountProblem),
        ((503, {}), Transient),
    ],
)
async def test_health_asks_for_a_price_with_the_key(fal, reply, error):
    fal.answers("GET", "/v1/models/pricing", reply)
    _, provider = fal.on_sale()["fal-nano-banana-2"]
    with raising(error):
        await provider.health()
    await provider.close()
    (request,) = fal.seen
    assert request.args["endpoint_id"] == "fal-ai/nano-banana-2"
    assert request.headers["Authorization"] == f"Key {KEY}"
