"""A 400 or 422 to a poll reveals nothing about the job: it runs, and is billed."""

import pytest
from vendor_site import PlainJob

import gateway_bfl.models
import gateway_fal.models
import gateway_kie.models
import gateway_replicate.models
from gateway import Handle, Outbound, Transient
from gateway.vendors import picture_endpoint
from gateway_bfl.tasks import Tasks
from gateway_fal.queue import Queue
from gateway_kie.jobs import Jobs
from gateway_replicate.predictions import Predictions

SELLERS = {
    "bfl": (Tasks, gateway_bfl.models.MODELS, {}),
    "fal": (Queue, gateway_fal.models.MODELS, {"platform": None}),
    "kie": (Jobs, gateway_kie.models.MODELS, {}),
    "replicate": (Predictions, gateway_replicate.models.MODELS, {}),
}


@pytest.mark.parametrize("status", [400, 413, 422])
@pytest.mark.parametrize("name", SELLERS)
async def test_a_poll_that_is_refused_is_asked_again(httpserver, name, status):
    kind, models, more = SELLERS[name]
    httpserver.expect_request("/poll").respond_with_json({"detail": "still in progress"}, status)
    httpserver.expect_request("/api/v1/jobs/recordInfo").respond_with_json(
        {"code": status, "msg": "Bad gateway of ours"}
    )
    url = httpserver.url_for("").rstrip("/")
    outbound = Outbound(url)
    provider = kind(outbound, models={one.slug: one for one in models}, **more)
    urls = dict.fromkeys(("poll", "status", "response"), f"{url}/poll")
    job = PlainJob(picture_endpoint(models[0], provider=name))
    with pytest.raises(Transient):
        await provider.poll(Handle(id="1", urls=urls), job)
    await outbound.close()
