"""A vendor's API on this machine: answers what a test writes down, and keeps what it was asked."""

import json

import attrs
from pytest_httpserver import HTTPServer
from werkzeug import Response

from gateway import Endpoint, GenerationRequest, Settings

BOAT = GenerationRequest(prompt="a boat", aspect_ratio="16:9", output_format="png")


@attrs.define
class Vendor:
    """One fake API; each path answers its replies in turn, and the last for ever."""

    server: HTTPServer
    seen: list = attrs.field(factory=list)

    @property
    def url(self):
        return self.server.url_for("").rstrip("/")

    def answers(self, method, path, *replies):
        left = list(replies)

        def answer(request):
            self.seen.append(request)
            status, body, *headers = left.pop(0) if len(left) > 1 else left[0]
            text = body if isinstance(body, bytes | str) else json.dumps(body)
            return Response(text, status, *headers, content_type="application/json")

        self.server.expect_request(path, method=method).respond_with_handler(answer)

    def asked(self, method):
        return [request for request in self.seen if request.method == method]


@attrs.define
class PlainJob:
    """A job as a provider sees it."""

    endpoint: Endpoint
    task_id: str = "t"
    attempt: int = 1

    async def progress(self, fraction, note=""):
        pass

    async def save(self, handle):
        pass


def on_sale(plugin, **values):
    """Return what a plugin registers: endpoints by slug, each with its provider."""
    found = {}

    def register(endpoint, provider):
        found[endpoint.slug] = (endpoint, provider)

    plugin.register_endpoints(register, Settings(plugin_values=values))
    return found
