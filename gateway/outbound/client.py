"""The HTTP client that providers are given: nothing repeated, everything capped, no way inside.

An API's own address is the operator's choice. A link that an API returned is a stranger's: it is
resolved, checked, and connected to at the very address that was checked.
"""

import asyncio
import contextlib
import http.cookiejar
import importlib
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Any

import attrs

from gateway.errors import SubmitUncertain, Transient
from gateway.outbound.addresses import is_public
from gateway.outbound.answer import REDIRECTS, Answer
from gateway.version import VERSION

_CONNECT_S = 10.0
_IDLE_S = 4.0  # that a connection is kept; many servers hang up after 5, and then nobody knows
_CONNECTIONS = 32
_HOPS = 3  # redirects of a download
_SAFE = ("GET", "HEAD", "DELETE")  # methods that may be sent again without harm


@attrs.define
class _Sending:
    """Hears from the connection whether any of the body may have gone out."""

    has_begun: bool = False

    async def __call__(self, event: str, info: Mapping[str, Any]) -> None:  # noqa: ARG002
        self.has_begun = self.has_begun or event.endswith("send_request_body.started")


@attrs.define
class Outbound:
    """One API's HTTP client; connections are kept between requests, so close it at the end.

    The base URL is the operator's, so it may be plain http and on a private network.
    """

    base_url: str
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False, kw_only=True)
    max_bytes: int = attrs.field(default=64_000_000, kw_only=True)  # a 4K PNG in Base64 has 45
    tls: ssl.SSLContext | None = attrs.field(default=None, repr=False, kw_only=True)
    _httpx: Any = attrs.field(default=None, init=False, repr=False)
    _api: Any = attrs.field(default=None, init=False, repr=False)
    _links: Any = attrs.field(default=None, init=False, repr=False)
    _opening: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False, repr=False)

    async def request(
        self, method: str, path: str, *, json: object = None, timeout_s: float = 60.0
    ) -> Answer:
        """Ask the API once, at `base_url + path`; the answer may have any status.

        Raises `Transient` where the request did not go out, or may be sent again without harm;
        `SubmitUncertain` where it went out and no whole answer came back.
        """
        if not path.startswith("/"):
            raise ValueError("a path begins with a slash")
        await self._open()
        sending = _Sending()
        request = self._api.build_request(
            method,
            self.base_url.rstrip("/") + path,
            json=json,
            headers=_always() | dict(self.headers),
            timeout=self._timeout(timeout_s),
            extensions={"trace": sending},
        )
        try:
            async with asyncio.timeout(timeout_s), self._sent(self._api, request) as response:
                return await self._read(response)
        except (self._httpx.HTTPError, Transient, TimeoutError, OSError) as error:
            what = str(error) if isinstance(error, Transient) else type(error).__name__
            if sending.has_begun and method not in _SAFE:
                raise SubmitUncertain(f"Sent, and no answer came back: {what}") from None
            raise Transient(f"No answer: {what}") from None
        except asyncio.CancelledError:  # by the attempt's time-out, or because the gateway stops
            if sending.has_begun and method not in _SAFE:
                raise SubmitUncertain("Sent, and cut off before an answer came.") from None
            raise

    async def download(self, url: str, *, timeout_s: float = 60.0) -> bytes:
        """Fetch what an API's answer links to, without this API's headers; https only.

        Raises `Transient` for every failure, also where the link leads to a private address or
        is redirected to another host.
        """
        await self._open()
        try:
            async with asyncio.timeout(timeout_s):
                return await self._follow(url, timeout_s)
        except (self._httpx.HTTPError, TimeoutError, OSError) as error:
            raise Transient(f"The result cannot be fetched: {type(error).__name__}") from None

    async def _follow(self, url: str, timeout_s: float) -> bytes:
        try:
            link = self._httpx.URL(url)
        except (self._httpx.InvalidURL, TypeError):
            raise Transient("The link to the result is none.") from None
        host = link.host
        for _ in range(1 + _HOPS):
            _check_link(link, host)
            async with self._pinned(link, timeout_s) as response:
                if response.status_code not in REDIRECTS:
                    answer = await self._read(response)
                    break
                try:
                    link = link.join(response.headers.get("location", ""))
                except self._httpx.InvalidURL:
                    raise Transient("The link to the result leads nowhere.") from None
        else:
            raise Transient("The link to the result is redirected too often.")
        if answer.status not in range(200, 300):
            raise Transient(f"The link to the result answers with status {answer.status}.")
        return answer.body

    @contextlib.asynccontextmanager
    async def _pinned(self, link: Any, timeout_s: float) -> AsyncIterator[Any]:
        """Connect to an address that was checked; the certificate must still be the name's."""
        addresses = await _resolve(link.host, link.port or 443)
        async with contextlib.AsyncExitStack() as stack:
            for number, address in enumerate(addresses, start=1):
                request = self._links.build_request(
                    "GET",
                    link.copy_with(host=address),
                    headers=_always() | {"Host": link.netloc.decode("ascii")},
                    timeout=self._timeout(timeout_s),
                    extensions={"sni_hostname": link.raw_host.decode("ascii")},
                )
                try:
                    response = await stack.enter_async_context(self._sent(self._links, request))
                    break
                except (self._httpx.ConnectError, self._httpx.ConnectTimeout):
                    if number == len(addresses):
                        raise
            yield response

    @contextlib.asynccontextmanager
    async def _sent(self, client: Any, request: Any) -> AsyncIterator[Any]:
        response = await client.send(request, stream=True)
        try:
            yield response
        finally:
            await response.aclose()

    async def _read(self, response: Any) -> Answer:
        """Read a body up to the limit; a packed one, which nobody asked for, may swell past it."""
        if response.headers.get("content-encoding", "identity") not in ("", "identity"):
            raise Transient("The answer is packed, though that was not asked for.")
        body = bytearray()
        async for piece in response.aiter_raw():
            body += piece
            if len(body) > self.max_bytes:
                raise Transient(f"The answer has more than {self.max_bytes} bytes.")
        return Answer(status=response.status_code, headers=dict(response.headers), body=bytes(body))

    def _timeout(self, timeout_s: float) -> Any:
        return self._httpx.Timeout(timeout_s, connect=min(_CONNECT_S, timeout_s))

    async def _open(self) -> None:
        """Load httpx2 and the trusted certificates in a thread, at the first request."""
        async with self._opening:
            if self._api is not None:
                return
            self._httpx, tls = await asyncio.to_thread(_load)
            self._api = self._client(self.tls or tls, kept=_CONNECTIONS)
            # A kept connection is known by its address alone; another name's certificate may
            # have opened it. So links share none.
            self._links = self._client(self.tls or tls, kept=0)

    def _client(self, tls: ssl.SSLContext, *, kept: int) -> Any:
        no_cookies = http.cookiejar.DefaultCookiePolicy(allowed_domains=[])
        return self._httpx.AsyncClient(
            verify=tls,
            trust_env=False,  # no proxies; SSL_CERT_FILE counts
            follow_redirects=False,
            cookies=http.cookiejar.CookieJar(no_cookies),  # one buyer's are not the next one's
            limits=self._httpx.Limits(
                max_connections=_CONNECTIONS,
                max_keepalive_connections=kept,
                keepalive_expiry=_IDLE_S,
            ),
        )

    async def close(self) -> None:
        """Hang up; a later request opens new connections."""
        clients, self._api, self._links = (self._api, self._links), None, None
        for client in clients:
            if client is not None:
                await client.aclose()


def _always() -> dict[str, str]:
    return {
        "Accept": "*/*",
        "Accept-Encoding": "identity",  # what is not packed cannot swell past the limit
        "User-Agent": f"generation-gateway/{VERSION}",
    }


def _load() -> tuple[Any, ssl.SSLContext]:
    httpx = importlib.import_module("httpx2")
    return httpx, httpx.create_ssl_context()


def _check_link(link: Any, host: str) -> None:
    if link.scheme != "https" or not link.host or link.userinfo:
        raise Transient("The link to the result is not plain https.")
    if link.host != host:
        raise Transient("The link to the result is redirected to another host.")


async def _resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host; raises `Transient` where any of them is not public."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if not addresses or not all(map(is_public, addresses)):
        raise Transient("The link to the result leads to an address that is not public.")
    return addresses
