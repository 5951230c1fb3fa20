"""The bundled provider of Azure Document Intelligence passes the kit."""

import pytest

import gateway_azure_documents
from gateway.testing import FakeApi, ProviderContract, Reply

pytestmark = pytest.mark.full

_MODEL = "/documentintelligence/documentModels/prebuilt-layout"


class AzureApi(FakeApi):
    """202 with the operation's URL in a header; the text comes with the last poll."""

    submit = f"POST {_MODEL}:analyze"
    poll = f"GET {_MODEL}/analyzeResults/[^/]+"
    others = "GET /documentintelligence/info"
    lacks = ("moderated", "nothing")

    def settings(self, url):
        return {"azure_documents_key": "azure-secret", "azure_documents_endpoint": url}

    def accepted(self, ask):
        where = f"{ask.url}{_MODEL}/analyzeResults/{ask.job}?api-version=2024-11-30"
        return Reply("", 202, headers={"Operation-Location": where})

    def waiting(self, ask):
        return Reply({"status": "running"})

    def made(self, ask):
        pages = [{"pageNumber": 1}]
        analysis = {"contentFormat": "markdown", "content": ask.made.markdown, "pages": pages}
        return Reply({"status": "succeeded", "analyzeResult": analysis})

    def failed(self, ask):
        return Reply({"status": "failed", "error": {"code": "InternalServerError"}})

    def lost(self, ask):
        return Reply({"error": {"code": "NotFound"}}, 404)

    def account(self, ask):
        return Reply({"error": {"code": "401"}}, 401)


class TestAzureDocuments(ProviderContract):
    plugin = gateway_azure_documents
    api = AzureApi
