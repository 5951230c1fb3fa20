"""How a request is sent and its answer read: httpx2, without anything it would do on its own."""

import asyncio
import contextlib
import http.cookiejar
import importlib
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Any

import attrs

from gateway.errors import Transient
from gateway.vendors.answer import Answer
from gateway.vendors.links import resolve
from gateway.vendors.sent import note_billable
from gateway.version import VERSION

_CONNECT_S = 10.0
_IDLE_S = 4.0  # that a connection is kept; many servers hang up after 5, and then nobody knows
_CONNECTIONS = 32


class TooLarge(Transient):
    """An answer goes beyond the limit."""


@attrs.define
class Sending:
    """Hears from the connection whether any of the body may have gone out."""

    may_be_billed: bool = False  # what is sent
    has_begun: bool = False

    async def __call__(self, event: str, info: Mapping[str, Any]) -> None:  # noqa: ARG002
        """Take down one event, as httpcore names it."""
        if not event.endswith("send_request_body.started"):
            return
        self.has_begun = True
        if self.may_be_billed:
            note_billable()

    @property
    def is_uncertain(self) -> bool:
        """Whether something may be made and billed without an answer that says so."""
        return self.has_begun and self.may_be_billed


@attrs.frozen
class Transport:
    """The connections to one API, and those to addresses that it gave."""

    httpx: Any
    _api: Any = attrs.field(repr=False)
    _links: Any = attrs.field(repr=False)

    def url(self, text: str) -> Any:
        """Return an address in its parts; raises `Transient` where it is none."""
        try:
            return self.httpx.URL(text)
        except (self.httpx.InvalidURL, TypeError):
            raise Transient("The link is no address.") from None

    def order(self, method: str, headers: Mapping[str, str], timeout_s: float) -> dict[str, Any]:
        """Return what every request has."""
        return {
            "method": method,
            "headers": _always() | dict(headers),
            "timeout": self.httpx.Timeout(timeout_s, connect=min(_CONNECT_S, timeout_s)),
        }

    @contextlib.asynccontextmanager
    async def direct(
        self, url: Any, order: Mapping[str, Any], sending: Sending
    ) -> AsyncIterator[Any]:
        """Send to an address of the operator's choice."""
        request = self._api.build_request(url=url, extensions={"trace": sending}, **order)
        async with _sent(self._api, request) as response:
            yield response

    @contextlib.asynccontextmanager
    async def pinned(
        self, link: Any, order: Mapping[str, Any], sending: Sending
    ) -> AsyncIterator[Any]:
        """Connect to an address that was checked; the certificate must still be the name's."""
        addresses = await resolve(link.host, link.port or 443)
        host = {"Host": link.netloc.decode("ascii")}
        sni = link.raw_host.decode("ascii")
        async with contextlib.AsyncExitStack() as stack:
            for number, address in enumerate(addresses, start=1):
                request = self._links.build_request(
                    **{**order, "headers": order["headers"] | host},
                    url=link.copy_with(host=address),
                    extensions={"sni_hostname": sni, "trace": sending},
                )
                try:
                    response = await stack.enter_async_context(_sent(self._links, request))
                    break
                except (self.httpx.ConnectError, self.httpx.ConnectTimeout):
                    if number == len(addresses):
                        raise
            yield response

    async def close(self) -> None:
        """Hang up."""
        await self._api.aclose()
        await self._links.aclose()


async def opened(tls: ssl.SSLContext | None) -> Transport:
    """Load httpx2 and the trusted certificates in a thread: both take a while."""
    httpx, trusted = await asyncio.to_thread(_load)
    # A kept connection is known by its address alone; another name's certificate may have opened
    # it. So links share none.
    return Transport(
        httpx,
        _client(httpx, tls or trusted, kept=_CONNECTIONS),
        _client(httpx, tls or trusted, kept=0),
    )


async def read(response: Any, *, max_bytes: int) -> Answer:
    """Read a body up to the limit; a packed one, which nobody asked for, may swell past it."""
    if response.headers.get("content-encoding", "identity") not in ("", "identity"):
        raise Transient("The answer is packed, though that was not asked for.")
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > max_bytes:
            raise TooLarge(f"The answer has more than {max_bytes} bytes.")
    return Answer(status=response.status_code, headers=dict(response.headers), body=bytes(body))


@contextlib.asynccontextmanager
async def _sent(client: Any, request: Any) -> AsyncIterator[Any]:
    response = await client.send(request, stream=True)
    try:
        yield response
    finally:
        await response.aclose()


def _client(httpx: Any, tls: ssl.SSLContext, *, kept: int) -> Any:
    no_cookies = http.cookiejar.DefaultCookiePolicy(allowed_domains=[])
    return httpx.AsyncClient(
        verify=tls,
        trust_env=False,  # no proxies; SSL_CERT_FILE counts
        follow_redirects=False,
        cookies=http.cookiejar.CookieJar(no_cookies),  # one buyer's are not the next one's
        limits=httpx.Limits(
            max_connections=_CONNECTIONS,
            max_keepalive_connections=kept,
            keepalive_expiry=_IDLE_S,
        ),
    )


def _always() -> dict[str, str]:
    return {
        "Accept": "*/*",
        "Accept-Encoding": "identity",  # what is not packed cannot swell past the limit
        "User-Agent": f"generation-gateway/{VERSION}",
    }


def _load() -> tuple[Any, ssl.SSLContext]:
    httpx = importlib.import_module("httpx2")
    return httpx, httpx.create_ssl_context()
