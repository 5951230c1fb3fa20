"""The bundled provider of Black Forest Labs passes the kit."""

import pytest

import gateway_bfl
from gateway.testing import FakeApi, ProviderContract, Reply
from tests.proof.kit.edits_contract import EditsContract

pytestmark = pytest.mark.full


class BflApi(FakeApi):
    """A task, polled at its `polling_url`; moderation has its own status."""

    submit = "POST /v1/flux-2-pro"
    poll = "GET /v1/get_result"
    others = "GET /v1/credits"
    output_host = "delivery-eu1.bfl.ai"

    def settings(self, url):
        return {"bfl_api_key": "bfl_secret", "bfl_base_url": url}

    def accepted(self, ask):
        return Reply({"id": ask.job, "polling_url": f"{ask.url}/v1/get_result?id={ask.job}"})

    def waiting(self, ask):
        return Reply({"id": ask.job, "status": "Pending"})

    def made(self, ask):
        return Reply({"id": ask.job, "status": "Ready", "result": {"sample": ask.made.link}})

    def nothing(self, ask):
        return Reply({"id": ask.job, "status": "Ready", "result": {}})

    def moderated(self, ask):
        return Reply({"id": ask.job, "status": "Content Moderated"})

    def failed(self, ask):
        return Reply({"id": ask.job, "status": "Error"})

    def lost(self, ask):
        return Reply({"id": ask.job, "status": "Task not found"}, 404)

    def account(self, ask):
        return Reply({"detail": "Insufficient credits"}, 402)

    def other(self, ask):
        return Reply({"credits": 100})


class TestBlackForestLabs(ProviderContract):
    plugin = gateway_bfl
    api = BflApi
    slug = "bfl-flux-2-pro"


class TestBlackForestLabsEdits(EditsContract):
    plugin = gateway_bfl
    api = BflApi
    slug = "bfl-flux-2-pro-edit"
