"""The bundled provider of docling-serve passes the kit."""

import gateway_docling
from gateway.testing import FakeApi, ProviderContract, Reply


class DoclingApi(FakeApi):
    """A task, its status, and then its result at a URL of its own."""

    submit = "POST /v1/convert/source/async"
    poll = "GET /v1/(status/poll|result)/[^/]+"
    others = "GET /v1/status/poll/[^/]+"
    lacks = ("moderated", "nothing")

    def settings(self, url):
        return {"docling_api_key": "docling-secret", "docling_base_url": url}

    def accepted(self, ask):
        return Reply({"task_id": ask.job, "task_status": "pending", "task_position": 1})

    def waiting(self, ask):
        return Reply({"task_id": ask.job, "task_status": "started"})

    def made(self, ask):
        if "/status/" in ask.path:
            return Reply({"task_id": ask.job, "task_status": "success"})
        return Reply({"document": {"md_content": ask.made.markdown}, "status": "success"})

    def failed(self, ask):
        return Reply({"task_id": ask.job, "task_status": "failure"})

    def lost(self, ask):
        return Reply({"detail": "Task not found."}, 404)

    def other(self, ask):
        return self.lost(ask)  # health asks for a task that cannot be

    def unknown(self, ask):
        return Reply({"detail": "Not Found"}, 404)


class TestDocling(ProviderContract):
    plugin = gateway_docling
    api = DoclingApi
