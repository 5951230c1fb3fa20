"""Sends one request with httpx2 and reads the response.

Cookies, redirects, proxies, compression and retries are disabled.
"""

import asyncio
import contextlib
import importlib
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import attrs

from gateway.errors import Transient
from gateway.vendors.answer import Answer
from gateway.vendors.links import LinkResolver
from gateway.vendors.sent import note_billable
from gateway.version import VERSION

_CONNECT_S = 10.0
# Idle connections are closed after this time. Many servers close theirs after 5 seconds, and then
# it would be unknown whether the server read the request.
_IDLE_S = 4.0
_CONNECTIONS = 32


class TooLarge(Transient):
    """The response exceeds the size limit."""


@attrs.define
class SendTrace:
    """Records from httpcore's events whether part of the body may have been sent.

    It also holds a new connection until a request is sent on it.
    """

    may_be_billed: bool = False
    """Whether the vendor may bill the request."""
    has_begun: bool = False
    """Whether sending the body may have begun."""
    _unused: Any = None
    """A new connection that has not been used."""

    async def __call__(self, event: str, info: Mapping[str, Any]) -> None:
        """Handle a trace event, named as in httpcore."""
        if event == "connection.connect_tcp.complete":
            self._unused = info["return_value"]
        elif event.endswith("send_request_headers.started"):
            self._unused = None
        elif event.endswith("send_request_body.started"):
            self.has_begun = True
            if self.may_be_billed:
                note_billable()

    async def hang_up(self) -> None:
        """Close a connection whose TLS handshake was cancelled; httpcore does not."""
        if self._unused is not None:
            await self._unused.aclose()

    @property
    def is_uncertain(self) -> bool:
        """Whether the vendor may produce and bill something even if no response arrives."""
        return self.has_begun and self.may_be_billed


@attrs.frozen
class Transport:
    """Connections to one API, and to links from its responses."""

    httpx: Any
    _api: Any = attrs.field(repr=False)
    _links: Any = attrs.field(repr=False)
    _resolver: LinkResolver = attrs.field(factory=LinkResolver)

    def url(self, text: str) -> Any:
        """Parse a URL. Raises `Transient` if it is invalid."""
        try:
            return self.httpx.URL(text)
        except (self.httpx.InvalidURL, TypeError):
            raise Transient("The link is no address.") from None

    def request_options(
        self, method: str, headers: Mapping[str, str], timeout_s: float
    ) -> dict[str, Any]:
        """Return the common arguments of `build_request`."""
        return {
            "method": method,
            "headers": _default_headers() | dict(headers),
            "timeout": self.httpx.Timeout(timeout_s, connect=min(_CONNECT_S, timeout_s)),
        }

    @contextlib.asynccontextmanager
    async def direct(
        self, url: Any, options: Mapping[str, Any], trace: SendTrace
    ) -> AsyncIterator[Any]:
        """Send a request to an address that the operator chose."""
        request = self._api.build_request(url=url, extensions={"trace": trace}, **options)
        async with _send(self._api, request, trace) as response:
            yield response

    @contextlib.asynccontextmanager
    async def pinned(
        self,
        link: Any,
        options: Mapping[str, Any],
        trace: SendTrace,
        addresses: Sequence[str] | None = None,
    ) -> AsyncIterator[Any]:
        """Send a request to a link, connecting only to addresses that were checked.

        The certificate must match the link's host. If a connection fails, the host's next address
        is tried. Pass `addresses` only if they were checked already.
        """
        if addresses is None:
            addresses = await self._resolver.resolve(link.host, link.port or 443)
        host = {"Host": link.netloc.decode("ascii")}
        sni = link.raw_host.decode("ascii")
        async with contextlib.AsyncExitStack() as stack:
            for number, address in enumerate(addresses, start=1):
                request = self._links.build_request(
                    **{**options, "headers": options["headers"] | host},
                    url=link.copy_with(host=address),
                    extensions={"sni_hostname": sni, "trace": trace},
                )
                try:
                    response = await stack.enter_async_context(_send(self._links, request, trace))
                    break
                except (self.httpx.ConnectError, self.httpx.ConnectTimeout):
                    if number == len(addresses):
                        raise
            yield response

    async def close(self) -> None:
        """Close all connections."""
        await self._api.aclose()
        await self._links.aclose()


async def open_transport(tls: ssl.SSLContext | None) -> Transport:
    """Load httpx2 and the trusted certificates in a thread, because both load slowly."""
    httpx, trusted = await asyncio.to_thread(_load)
    # httpx2 reuses a kept connection for every request to the same address, whatever the host,
    # although it was opened with another host's certificate. So connections to links are not kept.
    return Transport(
        httpx,
        _client(httpx, tls or trusted, kept=_CONNECTIONS),
        _client(httpx, tls or trusted, kept=0),
    )


async def read_answer(response: Any, *, max_bytes: int) -> Answer:
    """Read the whole response.

    Raises `TooLarge` for a body of more than `max_bytes`, and `Transient` for a compressed body: it
    was not requested, and its decompressed size is unknown.
    """
    if response.headers.get("content-encoding", "identity") not in ("", "identity"):
        raise Transient("The answer is packed, though that was not asked for.")
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > max_bytes:
            raise TooLarge(f"The answer has more than {max_bytes} bytes.")
    return Answer(status=response.status_code, headers=dict(response.headers), body=bytes(body))


@contextlib.asynccontextmanager
async def _send(client: Any, request: Any, trace: SendTrace) -> AsyncIterator[Any]:
    try:
        response = await client.send(request, stream=True)
    except BaseException:
        await trace.hang_up()
        raise
    try:
        yield response
    finally:
        await response.aclose()


def _client(httpx: Any, tls: ssl.SSLContext, *, kept: int) -> Any:
    # httpx2 imports this module. The server starts without both.
    cookiejar = importlib.import_module("http.cookiejar")
    # A cookie of one buyer's request must not be sent with the next buyer's.
    no_cookies = cookiejar.DefaultCookiePolicy(allowed_domains=[])
    return httpx.AsyncClient(
        verify=tls,
        # Ignore proxies of the environment; `_load` still honors SSL_CERT_FILE.
        trust_env=False,
        follow_redirects=False,
        cookies=cookiejar.CookieJar(no_cookies),
        limits=httpx.Limits(
            max_connections=_CONNECTIONS,
            max_keepalive_connections=kept,
            keepalive_expiry=_IDLE_S,
        ),
    )


def _default_headers() -> dict[str, str]:
    return {
        "Accept": "*/*",
        # A compressed body could exceed the limit when decompressed.
        "Accept-Encoding": "identity",
        "User-Agent": f"generation-gateway/{VERSION}",
    }


def _load() -> tuple[Any, ssl.SSLContext]:
    httpx = importlib.import_module("httpx2")
    return httpx, httpx.create_ssl_context()
