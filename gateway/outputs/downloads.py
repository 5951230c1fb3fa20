"""Connections to vendors and to links from their responses, and the download of such a link.

A link is untrusted: its host is resolved, the address is checked, and the connection goes to
exactly that address. Cookies, proxies and retries are disabled, no compression is requested, and
sizes and times are limited.
"""

import asyncio
import contextlib
import importlib
import ssl
import weakref
from collections.abc import AsyncIterator, Mapping, MutableMapping, Sequence
from typing import Any

import attrs

from gateway.errors import LinkDead, ResultUnusable, Transient
from gateway.outputs.codings import TooLarge, undo_codings
from gateway.outputs.links import LinkResolver, check_link, loopback_addresses
from gateway.version import VERSION

# A 4K PNG in Base64 has 45,000,000 bytes; 25 million pixels of noise would take 75 MB.
MAX_DOWNLOAD_BYTES = 64_000_000
REDIRECTS = range(300, 400)
# The redirects that one download follows.
_MAX_REDIRECTS = 3
_CONNECT_S = 10.0
# Idle connections are closed after this time. Many servers close theirs after 5 seconds, and then
# it would be unknown whether the server read the request.
_IDLE_S = 4.0
_CONNECTIONS = 32
_HEADERS = {
    "Accept": "*/*",
    # Compression gains nothing for pictures.
    "Accept-Encoding": "identity",
    "User-Agent": f"generation-gateway/{VERSION}",
}


@attrs.define(eq=False, repr=False)
class SendTrace:
    """Handles httpcore's events: it holds a new connection until a request is sent on it."""

    _unused: Any = attrs.field(default=None, init=False)
    """A new connection that has not been used."""

    async def __call__(self, event: str, info: Mapping[str, Any]) -> None:
        """Handle a trace event, named as in httpcore."""
        if event == "connection.connect_tcp.complete":
            self._unused = info["return_value"]
        elif event.endswith("send_request_headers.started"):
            self._unused = None

    async def hang_up(self) -> None:
        """Close a connection whose TLS handshake was cancelled; httpcore does not."""
        if self._unused is not None:
            await self._unused.aclose()


@attrs.define(eq=False, repr=False)
class _Requests:
    """The requests of a transport."""

    in_progress: int = 0
    is_retired: bool = False


@attrs.frozen(eq=False, repr=False)
class Transport:
    """Connections to one API, and to links from its responses."""

    httpx: Any
    _api: Any
    _links: Any
    _resolver: LinkResolver = attrs.field(factory=LinkResolver)
    _requests: _Requests = attrs.field(factory=_Requests, init=False)

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
            "headers": _HEADERS | dict(headers),
            "timeout": self.httpx.Timeout(timeout_s, connect=min(_CONNECT_S, timeout_s)),
        }

    @contextlib.asynccontextmanager
    async def direct(
        self, url: Any, options: Mapping[str, Any], trace: SendTrace
    ) -> AsyncIterator[Any]:
        """Send a request to an address that the operator chose."""
        request = self._api.build_request(url=url, extensions={"trace": trace}, **options)
        async with self.counted(), _send(self._api, request, trace) as response:
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
        host = {"Host": link.netloc.decode("ascii")}
        sni = link.raw_host.decode("ascii")
        async with self.counted(), contextlib.AsyncExitStack() as stack:
            if addresses is None:
                addresses = await self._resolver.resolve(link.host, link.port or 443)
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

    @contextlib.asynccontextmanager
    async def counted(self) -> AsyncIterator[None]:
        """Count a request in progress; the last one of a retired transport closes it."""
        self._requests.in_progress += 1
        try:
            yield
        finally:
            self._requests.in_progress -= 1
            if self._requests.is_retired and not self._requests.in_progress:
                await self.close()

    async def retire(self) -> None:
        """Close all connections once no request is in progress. Take no later one."""
        self._requests.is_retired = True
        if not self._requests.in_progress:
            await self.close()

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


async def read_body(response: Any, *, max_bytes: int) -> bytes:
    """Read the whole response.

    Raises `TooLarge` for a body of more than `max_bytes`, also after decompression, and `Transient`
    for a content coding that cannot be undone. None was requested.
    """
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > max_bytes:
            raise TooLarge(f"The answer has more than {max_bytes} bytes.")
    codings = response.headers.get("content-encoding", "")
    if codings.strip().lower() in ("", "identity"):
        return bytes(body)
    # In a thread, because a large body takes half a second.
    return await asyncio.to_thread(undo_codings, bytes(body), codings, max_bytes=max_bytes)


# The holders with open connections, by `id`.
_OPEN: MutableMapping[int, "TransportHolder"] = weakref.WeakValueDictionary()


async def renew_transports() -> None:
    """Let all later requests of this process open new connections, after it stood still.

    A connection may be dead without a sign. A request on it would be sent, as far as is known, so
    a vendor might have billed it.
    """
    for holder in list(_OPEN.values()):
        await holder.renew()


@attrs.define(eq=False, repr=False)
class TransportHolder:
    """Opens its transport for the first request, and keeps it until it is closed."""

    tls: ssl.SSLContext | None = attrs.field(default=None, repr=False, kw_only=True)
    """The trusted certificates. None: those of the system."""
    _transport: Transport | None = attrs.field(default=None, init=False, repr=False)
    _opening: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False, repr=False)

    async def _open(self) -> Transport:
        async with self._opening:
            if self._transport is None:
                self._transport = await open_transport(self.tls)
                _OPEN[id(self)] = self
            return self._transport

    async def renew(self) -> None:
        """Open a new transport for later requests; the old one ends with its last request."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.retire()

    async def close(self) -> None:
        """Close all connections; a later request opens new ones."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.close()


@attrs.define(eq=False, repr=False)
class Downloader(TransportHolder):
    """Downloads links. It keeps connections to the vendor's API, so close it at the end."""

    max_bytes: int = attrs.field(default=MAX_DOWNLOAD_BYTES, kw_only=True)
    """The maximum response size."""
    follows_loopback: bool = attrs.field(default=False, kw_only=True)
    """Whether `download` also follows links to this machine (`GATEWAY_ALLOW_LOOPBACK_LINKS`)."""
    loopback_hint: str = attrs.field(default="", kw_only=True)
    """The end of the message about such a link while they are refused."""

    async def download(self, url: str, *, timeout_s: float = 60.0) -> bytes:
        """Download a file that the API linked to; https only, without the API's headers.

        Follows redirects on the link's host. Raises `ResultUnusable` for a file of more than
        `max_bytes`, and `LinkDead` for any other failure, such as a link to a private address or a
        redirect to another host.
        """
        transport = await self._open()
        try:
            # Redirects need the same transport.
            async with asyncio.timeout(timeout_s), transport.counted():
                status, body = await self._fetch_link(transport, url, timeout_s)
        except TooLarge:
            raise ResultUnusable("The result was made, but is larger than what is sold.") from None
        except Transient as error:
            hint = self._hint_at_loopback(transport, url)
            raise LinkDead(f"The result was made, but cannot be fetched. {error}{hint}") from None
        except (transport.httpx.HTTPError, TimeoutError, OSError, UnicodeError) as error:
            kind = type(error).__name__
            raise LinkDead(f"The result was made, but cannot be fetched: {kind}.") from None
        if status not in range(200, 300):
            raise LinkDead(f"The result was made, but its link answers with status {status}.")
        return body

    def _hint_at_loopback(self, transport: Transport, url: str) -> str:
        with contextlib.suppress(Transient):
            if loopback_addresses(transport.url(url)) and not self.follows_loopback:
                return self.loopback_hint
        return ""

    async def _fetch_link(
        self, transport: Transport, url: str, timeout_s: float
    ) -> tuple[int, bytes]:
        """Return status and body, after the redirects on the link's host."""
        link = transport.url(url)
        host = link.host
        options = transport.request_options("GET", {}, timeout_s)
        for _ in range(1 + _MAX_REDIRECTS):
            addresses = loopback_addresses(link) if self.follows_loopback else None
            if addresses is None or link.host != host:
                check_link(link, host)
            async with transport.pinned(link, options, SendTrace(), addresses) as response:
                if response.status_code not in REDIRECTS:
                    body = await read_body(response, max_bytes=self.max_bytes)
                    return response.status_code, body
                try:
                    link = link.join(response.headers.get("location", ""))
                except transport.httpx.InvalidURL:
                    raise Transient("The link to the result leads nowhere.") from None
        raise Transient("The link to the result is redirected too often.")


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


def _load() -> tuple[Any, ssl.SSLContext]:
    httpx = importlib.import_module("httpx2")
    return httpx, httpx.create_ssl_context()
