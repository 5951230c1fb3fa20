"""HTTP client for vendor APIs: no automatic retries; sizes and times are limited.

The operator chose the base URL, so it may lead anywhere. A link in a response is untrusted: its
host is resolved, the address is checked, and the connection goes to exactly that address.
"""

import asyncio
import contextlib
import re
import ssl
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import attrs

from gateway.errors import AccountProblem, LinkDead, ResultUnusable, SubmitUncertain, Transient
from gateway.vendors.answer import REDIRECTS, Answer
from gateway.vendors.links import check_link, loopback_addresses
from gateway.vendors.refusals import note_answer, note_no_answer
from gateway.vendors.shapes import note_shape
from gateway.vendors.transport import (
    SendTrace,
    TooLarge,
    Transport,
    open_transport,
    read_answer,
)

# The redirects that one download follows.
_MAX_REDIRECTS = 3
# Valid header values in HTTP.
_SENDABLE = re.compile(r"[!-~]+([ \t]+[!-~]+)*")
# Methods that usually cost nothing, so that they may be repeated.
_SAFE = ("GET", "HEAD", "DELETE")
Files = Mapping[str, tuple[str, bytes, str]]


@attrs.define
class Outbound:
    """An HTTP client for one vendor's API. It keeps connections, so close it at the end."""

    base_url: str = attrs.field(repr=False)
    """The API's base URL, set by the operator. Plain http and private networks are allowed. Left
    out of the repr, because some operators put a key into it."""
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False, kw_only=True)
    """Sent with every request to the API, such as its key, but never with a download."""
    hosts: tuple[str, ...] = attrs.field(default=(), kw_only=True)
    """Other hosts that may receive the API's key, such as "*.example.com"."""
    max_bytes: int = attrs.field(default=64_000_000, kw_only=True)
    """The maximum response size. A 4K PNG in Base64 has 45,000,000 bytes."""
    follows_loopback: bool = attrs.field(default=False, kw_only=True)
    """Whether `download` also follows links to this machine (`GATEWAY_ALLOW_LOOPBACK_LINKS`)."""
    tls: ssl.SSLContext | None = attrs.field(default=None, repr=False, kw_only=True)
    """The trusted certificates. None: those of the system."""
    _transport: Transport | None = attrs.field(default=None, init=False, repr=False)
    _opening: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False, repr=False)

    async def request(
        self,
        method: str,
        where: str,
        *,
        json: object = None,
        files: Files | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 60.0,
        bills: bool | None = None,
    ) -> Answer:
        """Send one request to the API. Returns the response, whatever its status (`Answer.check`).

        `where` is a path below `base_url`, or a URL from the API. Such a URL must also be below
        `base_url` or on one of `hosts`, because the request carries the API's key. `files` are sent
        as a form: field to (name, bytes, media type).

        `bills`: whether the vendor may charge for the request. By default False for GET, HEAD and
        DELETE, and True for other methods; pass False for an upload or a login.

        Raises `Transient` if the request was not sent, or is safe to repeat; `SubmitUncertain` if
        it may be billed, was sent, and no complete response arrived; `AccountProblem` for a key
        that is not a valid header value.
        """
        if not all(map(_SENDABLE.fullmatch, self.headers.values())):
            raise AccountProblem("The key cannot be sent: is there a line break or an odd letter?")
        transport = await self._open()
        options = transport.request_options(method, {**self.headers, **(headers or {})}, timeout_s)
        options |= {"json": json, "files": files}
        trace = SendTrace(method not in _SAFE if bills is None else bills)
        try:
            return await self._exchange(transport, where, options, trace, timeout_s)
        except (transport.httpx.HTTPError, Transient, OSError, UnicodeError) as error:
            raise _error_without_answer(error, trace) from None
        except asyncio.CancelledError:
            # The attempt timed out, or the gateway is shutting down.
            if trace.is_uncertain:
                raise SubmitUncertain("Sent, and cut off before an answer came.") from None
            raise

    async def _exchange(
        self,
        transport: Transport,
        where: str,
        options: Mapping[str, Any],
        trace: SendTrace,
        timeout_s: float,
    ) -> Answer:
        """Send a request, and record the response for diagnostics."""
        note_no_answer()
        sent = self._send(transport, where, options, trace)
        async with asyncio.timeout(timeout_s), sent as response:
            answer = await read_answer(response, max_bytes=self.max_bytes)
            note_answer(answer.status, answer.body)
            note_shape(options["method"], answer.status, answer.body)
            return attrs.evolve(answer, may_be_billed=trace.may_be_billed)

    async def download(self, url: str, *, timeout_s: float = 60.0) -> bytes:
        """Download a file that the API linked to; https only, without the API's headers.

        Follows redirects on the link's host. Raises `ResultUnusable` for a file of more than
        `max_bytes`, and `LinkDead` for any other failure, such as a link to a private address or a
        redirect to another host.
        """
        transport = await self._open()
        try:
            async with asyncio.timeout(timeout_s):
                answer = await self._fetch_link(transport, url, timeout_s)
        except TooLarge:
            raise ResultUnusable("The result was made, but is larger than what is sold.") from None
        except Transient as error:
            raise LinkDead(f"The result was made, but cannot be fetched. {error}") from None
        except (transport.httpx.HTTPError, TimeoutError, OSError, UnicodeError) as error:
            kind = type(error).__name__
            raise LinkDead(f"The result was made, but cannot be fetched: {kind}.") from None
        if answer.status not in range(200, 300):
            raise LinkDead(
                f"The result was made, but its link answers with status {answer.status}."
            )
        return answer.body

    async def _fetch_link(self, transport: Transport, url: str, timeout_s: float) -> Answer:
        link = transport.url(url)
        host = link.host
        options = transport.request_options("GET", {}, timeout_s)
        for _ in range(1 + _MAX_REDIRECTS):
            addresses = loopback_addresses(link) if self.follows_loopback else None
            if addresses is None or link.host != host:
                check_link(link, host)
            async with transport.pinned(link, options, SendTrace(), addresses) as response:
                if response.status_code not in REDIRECTS:
                    return await read_answer(response, max_bytes=self.max_bytes)
                try:
                    link = link.join(response.headers.get("location", ""))
                except transport.httpx.InvalidURL:
                    raise Transient("The link to the result leads nowhere.") from None
        raise Transient("The link to the result is redirected too often.")

    def _send(
        self, transport: Transport, where: str, options: Mapping[str, Any], trace: SendTrace
    ) -> contextlib.AbstractAsyncContextManager[Any]:
        """Send only below `base_url`, or to one of the API's hosts."""
        base = self.base_url.rstrip("/")
        if where.startswith("/"):
            return transport.direct(transport.url(base + where), options, trace)
        if where == base or where.startswith((f"{base}/", f"{base}?")):
            return transport.direct(transport.url(where), options, trace)
        link = transport.url(where)
        check_link(link, link.host)
        own = transport.url(base).host
        if link.host != own and not any(fnmatchcase(link.host, host) for host in self.hosts):
            raise Transient("The provider gave an address of a host that is not its own.")
        return transport.pinned(link, options, trace)

    async def _open(self) -> Transport:
        async with self._opening:
            if self._transport is None:
                self._transport = await open_transport(self.tls)
            return self._transport

    async def close(self) -> None:
        """Close all connections; a later request opens new ones."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.close()


def _error_without_answer(error: Exception, trace: SendTrace) -> SubmitUncertain | Transient:
    reason = str(error) if isinstance(error, Transient) else type(error).__name__
    if trace.is_uncertain:
        return SubmitUncertain(f"Sent, and no answer came back: {reason}")
    return Transient(f"No answer: {reason}")
