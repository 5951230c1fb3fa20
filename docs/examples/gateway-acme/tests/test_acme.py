"""The provider passes the gateway's tests against a fake of Acme's documented API."""

import gateway_acme

from gateway.testing import Ask, FakeApi, ProviderContract, Reply


class AcmeApi(FakeApi):
    """Acme's jobs."""

    submit = "POST /v1/jobs"
    cancel = "DELETE /v1/jobs/.*"
    poll = "GET /v1/jobs/.*"
    others = "GET /v1/account"
    output_host = "files.acme.example"

    def settings(self, url: str) -> dict[str, str]:
        return {"acme_api_key": "never-to-be-seen", "acme_base_url": url}

    def accepted(self, ask: Ask) -> Reply:
        return Reply({"job": ask.job, "status_url": f"{ask.url}/v1/jobs/{ask.job}"}, 202)

    def waiting(self, ask: Ask) -> Reply:
        return Reply({"job": ask.job, "state": "running", "progress": 0.5})

    def made(self, ask: Ask) -> Reply:
        return Reply({"job": ask.job, "state": "done", "picture": ask.made.link})

    def moderated(self, ask: Ask) -> Reply:
        return Reply({"job": ask.job, "state": "refused"})

    def nothing(self, ask: Ask) -> Reply:
        return Reply({"job": ask.job, "state": "done"})

    def failed(self, ask: Ask) -> Reply:
        return Reply({"job": ask.job, "state": "failed"})

    def account(self, ask: Ask) -> Reply:
        return Reply({"error": "no_credit"}, 429)

    def other(self, ask: Ask) -> Reply:
        return Reply({"credit_usd": 20})


class TestAcme(ProviderContract):
    plugin = gateway_acme
    api = AcmeApi
