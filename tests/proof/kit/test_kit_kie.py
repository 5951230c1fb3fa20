"""The bundled provider of kie.ai passes the kit."""

import json

import pytest

import gateway_kie
from gateway.testing import FakeApi, ProviderContract, Reply

pytestmark = pytest.mark.full


class KieApi(FakeApi):
    """kie.ai always responds with status 200; `code` has the meaning."""

    submit = "POST /api/v1/jobs/createTask"
    poll = "GET /api/v1/jobs/recordInfo"
    others = "GET /api/v1/chat/credit"

    def settings(self, url):
        return {"kie_api_key": "kie-secret", "kie_base_url": url}

    def accepted(self, ask):
        return self._code(200, data={"taskId": ask.job})

    def waiting(self, ask):
        return self._code(200, data={"taskId": ask.job, "state": "generating"})

    def made(self, ask):
        return self._done(ask, resultJson=json.dumps({"resultUrls": [ask.made.link]}))

    def nothing(self, ask):
        return self._done(ask, resultJson="{}")

    def moderated(self, ask):
        failure = {"failCode": "500", "failMsg": "The prompt was flagged as sensitive"}
        return self._code(200, data={"taskId": ask.job, "state": "fail", **failure})

    def failed(self, ask):
        failure = {"failCode": "500", "failMsg": "Internal error"}
        return self._code(200, data={"taskId": ask.job, "state": "fail", **failure})

    def lost(self, ask):
        return self._code(404)

    def limited(self, ask):
        return self._code(429)

    def account(self, ask):
        return self._code(402)

    def broken(self, ask):
        return self._code(500)

    def busy(self, ask):
        return self._code(455)

    def other(self, ask):
        return self._code(200, data=100)

    def _done(self, ask, **fields):
        return self._code(200, data={"taskId": ask.job, "state": "success", **fields})

    def _code(self, code, **fields):
        return Reply({"code": code, "msg": "", **fields})


class TestKie(ProviderContract):
    plugin = gateway_kie
    api = KieApi
    slug = "kie-nano-banana-2"
