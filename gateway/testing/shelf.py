"""Where the kit's gateway fetches files from: the fake API's, under the https links it gave."""

from typing import Self
from urllib.parse import urlsplit

import attrs

from gateway.errors import ProviderError, Transient
from gateway.outbound import Outbound
from gateway.testing.fake_server import FakeServer

_MAX_BYTES = 4_000_000  # the real one's is sixteen times as much


@attrs.define
class Shelf:
    """Stands in for the gateway's own client of links, which would want a certificate."""

    host: str
    http: Outbound

    @classmethod
    def at(cls, server: FakeServer) -> Self:
        """Return the shelf of one fake API."""
        return cls(server.api.output_host, Outbound(server.url, max_bytes=_MAX_BYTES))

    async def download(self, url: str, *, timeout_s: float = 60.0) -> bytes:
        """Fetch a file; raises `Transient` for every failure, as the real one does."""
        link = urlsplit(url)
        if link.scheme != "https" or link.hostname != self.host:
            raise Transient("The link is none that the API gave.")
        try:
            answer = await self.http.request("GET", link.path, timeout_s=timeout_s)
            answer.check()
        except ProviderError as error:
            raise Transient(str(error)) from None
        return answer.body

    async def close(self) -> None:
        """Hang up."""
        await self.http.close()
