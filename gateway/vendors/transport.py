"""Sends one request by httpx2 and reads its answer.

Cookies, redirects, proxies and compression are switched off, and nothing is sent twice.
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
from gateway.vendors.links import LookUps
from gateway.vendors.sent import note_billable
from gateway.version import VERSION

_CONNECT_S = 10.0
# An idle connection is closed after this time. Many servers close theirs after 5 seconds, and a
# request that meets a closing connection leaves open whether the server read it.
_IDLE_S = 4.0
_CONNECTIONS = 32


class TooLarge(Transient):
    """An answer has more bytes than the limit."""


@attrs.define
class SendTrace:
    """Records from httpcore's events whether a part of the body may have been sent.

    It also holds a new connection until the request is sent on it.
    """

    may_be_billed: bool = False
    """Whether the vendor may bill the request that is sent."""
    has_begun: bool = False
    """Whether the body may have begun to go out."""
    _unused: Any = None
    """A new connection on which nothing has been sent."""

    async def __call__(self, event: str, info: Mapping[str, Any]) -> None:
        """Record one event, under its name in httpcore."""
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
        """Whether the vendor may make and bill something even if no answer arrives."""
        return self.has_begun and self.may_be_billed


@attrs.frozen
class Transport:
    """Connections to one API, and connections to addresses that the API gave."""

    httpx: Any
    _api: Any = attrs.field(repr=False)
    _links: Any = attrs.field(repr=False)
    _names: LookUps = attrs.field(factory=LookUps)

    def url(self, text: str) -> Any:
        """Return a parsed address; raises `Transient` for a text that is not an address."""
        try:
            return self.httpx.URL(text)
        except (self.httpx.InvalidURL, TypeError):
            raise Transient("The link is no address.") from None

    def request_options(
        self, method: str, headers: Mapping[str, str], timeout_s: float
    ) -> dict[str, Any]:
        """Return the arguments of `build_request` that every request has."""
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
        """Send a request to a link: connect to the address that was checked, and no other.

        The certificate must be that of the link's host. The host's further addresses are tried
        in turn if a connection fails. `addresses` are given where the caller has checked them.
        """
        if addresses is None:
            addresses = await self._names.resolve(link.host, link.port or 443)
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
    """Load httpx2 and the trusted certificates in a thread, because both are slow to load."""
    httpx, trusted = await asyncio.to_thread(_load)
    # httpx2 reuses a kept connection for every request to the same address, whatever host it is
    # for, and the connection may have been opened with another host's certificate. So connections
    # to links are not kept.
    return Transport(
        httpx,
        _client(httpx, tls or trusted, kept=_CONNECTIONS),
        _client(httpx, tls or trusted, kept=0),
    )


async def read_answer(response: Any, *, max_bytes: int) -> Answer:
    """Return the answer with its whole body.

    Raises `TooLarge` for a body of more than `max_bytes`, and `Transient` for a compressed body:
    it was not asked for, and its size after decompression is not known.
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
    # httpx2 imports this module. The server starts without either.
    cookiejar = importlib.import_module("http.cookiejar")
    # A cookie of one buyer's request must not go out with the next buyer's.
    no_cookies = cookiejar.DefaultCookiePolicy(allowed_domains=[])
    return httpx.AsyncClient(
        verify=tls,
        # Proxies of the environment are ignored; `_load` reads SSL_CERT_FILE all the same.
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
        # A compressed body could grow past the limit when it is decompressed.
        "Accept-Encoding": "identity",
        "User-Agent": f"generation-gateway/{VERSION}",
    }


def _load() -> tuple[Any, ssl.SSLContext]:
    httpx = importlib.import_module("httpx2")
    return httpx, httpx.create_ssl_context()
