"""The bundled provider of fal.ai passes the kit."""

import gateway_fal
from gateway.testing import FakeApi, ProviderContract, Reply
from tests.proof.kit.edits_contract import EditsContract

_MODEL = "/fal-ai/nano-banana-2"


class FalApi(FakeApi):
    """fal's queue: failures are COMPLETED too, and only the response distinguishes them."""

    submit = f"POST {_MODEL}"
    cancel = "PUT .*/cancel"
    poll = f"GET {_MODEL}/requests/[^/]+(/status)?"
    others = "GET /v1/models/pricing"
    output_host = "v3.fal.media"

    def settings(self, url):
        return {"fal_api_key": "id:secret", "fal_base_url": url, "fal_platform_url": url}

    def accepted(self, ask):
        return Reply({"status": "IN_QUEUE", "queue_position": 0, **_queued(ask)})

    def waiting(self, ask):
        return Reply({"status": "IN_PROGRESS", "logs": None, **_queued(ask)}, 202)

    def made(self, ask):
        picture = {"url": ask.made.link, "content_type": "image/png"}
        return self._ended(ask, Reply({"images": [picture]}))

    def moderated(self, ask):
        detail = {"loc": ["body", "prompt"], "type": "content_policy_violation", "msg": "…"}
        return self._ended(ask, Reply({"detail": [detail]}, 422))

    def nothing(self, ask):
        return self._ended(ask, Reply({"images": []}))

    def failed(self, ask):
        return self._ended(ask, Reply({"detail": [{"type": "internal_server_error"}]}, 500))

    def cancelled(self, ask):
        return Reply({"status": "CANCELLATION_REQUESTED"}, 202)

    def other(self, ask):
        return Reply({"prices": []})

    def _ended(self, ask, response):
        if not ask.path.endswith("/status"):
            return response
        metrics = {"inference_time": 1.5}
        return Reply({"status": "COMPLETED", "logs": None, "metrics": metrics, **_queued(ask)})


def _queued(ask):
    job = f"{ask.url}{_MODEL}/requests/{ask.job}"
    urls = {"status_url": f"{job}/status", "response_url": job, "cancel_url": f"{job}/cancel"}
    return {"request_id": ask.job, **urls}


class TestFal(ProviderContract):
    plugin = gateway_fal
    api = FalApi
    slug = "fal-nano-banana-2"


class FalEditsApi(FalApi):
    """A model's edits have a path below it; its jobs have not."""

    submit = f"POST {_MODEL}/edit"


class TestFalEdits(EditsContract):
    plugin = gateway_fal
    api = FalEditsApi
    slug = "fal-nano-banana-2-edit"
