"""The bundled provider of LlamaParse passes the kit."""

import pytest

import gateway_llamaparse
from gateway.testing import FakeApi, ProviderContract, Reply

pytestmark = pytest.mark.full


class LlamaParseApi(FakeApi):
    """A file is uploaded, which is not billed; then a job is started and polled with its text."""

    submit = "POST /api/v2/parse"
    poll = r"GET /api/v2/parse/[^/]+"
    others = "POST /api/v1/beta/files|GET /api/v2/parse"
    cancel = r"POST /api/v2/parse/[^/]+/cancel"
    lacks = ("moderated", "nothing")

    def settings(self, url):
        return {"llamaparse_api_key": "llx-secret", "llamaparse_base_url": url}

    def accepted(self, ask):
        return Reply({"id": ask.job, "status": "PENDING"})

    def waiting(self, ask):
        return Reply({"job": {"id": ask.job, "status": "RUNNING"}})

    def made(self, ask):
        pages = [{"page_number": 1, "markdown": ask.made.markdown, "success": True}]
        job = {"id": ask.job, "status": "COMPLETED"}
        return Reply({"job": job, "markdown": {"pages": pages}})

    def failed(self, ask):
        return Reply({"job": {"id": ask.job, "status": "FAILED", "error_message": "oops"}})

    def other(self, ask):
        return Reply({"id": "file-1"} if ask.method == "POST" else {"items": []})


class TestLlamaParse(ProviderContract):
    plugin = gateway_llamaparse
    api = LlamaParseApi


class LlamaExtractApi(LlamaParseApi):
    """Like LlamaParse, but the job itself contains the data."""

    submit = "POST /api/v2/extract"
    poll = r"GET /api/v2/extract/[^/]+"
    others = "POST /api/v1/beta/files|GET /api/v2/extract"
    cancel = r"POST /api/v2/extract/[^/]+/cancel"
    lacks = ("moderated",)

    def waiting(self, ask):
        return Reply({"id": ask.job, "status": "RUNNING"})

    def made(self, ask):
        return Reply({"id": ask.job, "status": "COMPLETED", "extract_result": ask.made.extracted})

    def nothing(self, ask):
        return Reply({"id": ask.job, "status": "COMPLETED", "extract_result": None})

    def failed(self, ask):
        return Reply({"id": ask.job, "status": "FAILED", "error_message": "oops"})


class TestLlamaExtract(ProviderContract):
    plugin = gateway_llamaparse
    slug = gateway_llamaparse.EXTRACTOR.slug
    api = LlamaExtractApi
