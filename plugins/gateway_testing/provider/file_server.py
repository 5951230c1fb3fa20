"""Fetches results for the gateway under test: from the fake API, under the https links it gave."""

from typing import Self
from urllib.parse import urlsplit

import attrs

from gateway.errors import Transient
from gateway.vendors import Answer, Outbound
from gateway.vendors.transport import SendTrace, Transport, read_answer
from gateway_testing.fakes.server import FakeServer

# A sixteenth of the real client's limit.
_MAX_BYTES = 4_000_000


@attrs.define
class FileServer(Outbound):
    """Replaces the gateway's client for links, which needs a server with a certificate."""

    host: str = attrs.field(default="", kw_only=True)

    @classmethod
    def of(cls, server: FakeServer) -> Self:
        """Return the file server of one fake API."""
        return cls(server.url, max_bytes=_MAX_BYTES, host=server.api.output_host)

    async def _fetch_link(self, transport: Transport, url: str, timeout_s: float) -> Answer:
        """Return what the fake API has under a link; `download` checks it as in production."""
        link = urlsplit(url)
        if link.scheme != "https" or link.hostname != self.host:
            raise Transient("The link is none that the API gave.")
        where = transport.url(self.base_url + link.path)
        options = transport.request_options("GET", {}, timeout_s)
        async with transport.direct(where, options, SendTrace()) as response:
            return await read_answer(response, max_bytes=self.max_bytes)
