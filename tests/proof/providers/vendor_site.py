"""A fake vendor on this machine, and the adapter under test."""

import contextlib
import json
from typing import ClassVar

import attrs
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from gateway import Endpoint, GenerationRequest, Handle, Provider, Settings

BOAT = GenerationRequest(prompt="a boat", aspect_ratio="16:9", output_format="png")


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


@attrs.define
class Seller:
    """One endpoint with its provider, which the test closes."""

    endpoint: Endpoint
    provider: Provider
    request: GenerationRequest
    handle: Handle | None = None

    async def submit(self, request=None):
        return await self.provider.submit(request or self.request, PlainJob(self.endpoint))

    async def poll(self):
        return await self.provider.poll(self.handle, PlainJob(self.endpoint))


@attrs.define
class Vendor:
    """The base of all fake vendors: replies, received requests, and the adapter's endpoints.

    Each path returns its replies in turn, and then repeats the last one. A subclass names the
    adapter, its settings here, and the needs of a job.
    """

    plugin: ClassVar = None
    slug: ClassVar[str | None] = None  # None: the adapter sells one endpoint
    request: ClassVar[GenerationRequest] = BOAT
    handle: ClassVar[Handle | None] = None

    server: HTTPServer
    seen: list = attrs.field(factory=list)

    def __attrs_post_init__(self):
        # Unknown paths are 404.
        self.server.no_handler_status_code = 404

    @property
    def url(self):
        return self.server.url_for("").rstrip("/")

    def settings(self):
        """Return the operator's settings that put the adapter on sale."""
        return {}

    def answer_job(self, *replies):
        """Return a job for a submit, and a reply for each poll."""
        raise NotImplementedError

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

    def on_sale(self, **values):
        """Return endpoints by slug, each with its provider; `values` are the operator's."""
        return on_sale(self.plugin, **(self.settings() | values))

    def seller(self, slug=None, **values):
        found = self.on_sale(**values)
        return Seller(*found[slug or self.slug or next(iter(found))], self.request, self.handle)

    async def submit(self, request=None, slug=None, **values):
        """Submit once and close."""
        seller = self.seller(slug, **values)
        try:
            return await seller.submit(request)
        finally:
            await seller.provider.close()

    async def poll(self, *replies, **more):
        """Start a job, poll it once and close."""
        self.answer_job(*replies, **more)
        seller = self.seller()
        try:
            seller.handle = await seller.submit()
            return await seller.poll()
        finally:
            await seller.provider.close()


def raising(error):
    """Return a block that expects an error, or none if `error` is None."""
    return contextlib.nullcontext() if error is None else pytest.raises(error)


def on_sale(plugin, **values):
    """Return a plugin's endpoints by slug, each with its provider."""
    found = {}

    def register(endpoint, provider):
        found[endpoint.slug] = (endpoint, provider)

    plugin.register_endpoints(register, Settings(plugin_values=values))
    return found
