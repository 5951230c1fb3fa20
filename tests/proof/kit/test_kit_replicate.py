"""The bundled provider of Replicate passes the kit."""

import pytest

import gateway_replicate
from gateway.testing import FakeApi, ProviderContract, Reply

pytestmark = pytest.mark.full

_ORDERED = {
    "model": "black-forest-labs/flux-2-pro",
    "version": "hidden",
    "input": {"prompt": "a boat"},
    "created_at": "2026-11-23T00:00:00.000Z",
    "data_removed": False,
}


class ReplicateApi(FakeApi):
    """Predictions: created at the model's URL, polled at the URL in `urls.get`."""

    submit = "POST /v1/models/black-forest-labs/flux-2-pro/predictions"
    cancel = "POST .*/cancel"
    poll = "GET /v1/predictions/[^/]+"
    others = "GET /v1/account|POST /v1/files"
    output_host = "replicate.delivery"

    def settings(self, url):
        return {"replicate_api_key": "r8_secret", "replicate_base_url": url}

    def accepted(self, ask):
        return self._prediction(ask, 201, status="starting")

    def waiting(self, ask):
        return self._prediction(ask, status="processing")

    def made(self, ask):
        return self._prediction(ask, status="succeeded", output=[ask.made.link])

    def nothing(self, ask):
        return self._prediction(ask, status="succeeded", output=[])

    def moderated(self, ask):
        error = "The input or output was flagged as sensitive. (E005)"
        return self._prediction(ask, status="failed", error=error)

    def failed(self, ask):
        return self._prediction(ask, status="failed", error="CUDA out of memory")

    def _prediction(self, ask, http_status=200, **fields):
        where = f"{ask.url}/v1/predictions/{ask.job}"
        urls = {"get": where, "cancel": f"{where}/cancel"}
        body = {"output": None, "error": None, "logs": "", "metrics": {}} | fields
        return Reply({"id": ask.job, "urls": urls, **_ORDERED, **body}, http_status)


class TestReplicate(ProviderContract):
    plugin = gateway_replicate
    api = ReplicateApi
    slug = "replicate-flux-2-pro"


class ReplicateEditsApi(ReplicateApi):
    """The picture is uploaded before the prediction, which is not billed."""

    def other(self, ask):
        if (ask.method, ask.path) == ("POST", "/v1/files"):
            return Reply({"id": "f1", "urls": {"get": f"{ask.url}/v1/files/f1"}}, 201)
        return super().other(ask)


class TestReplicateEdits(ProviderContract):
    plugin = gateway_replicate
    api = ReplicateEditsApi
    slug = "replicate-flux-2-pro-edit"
