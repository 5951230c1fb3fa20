"""The HTTP client for a vendor's API: nothing is repeated, sizes and times are capped.

The operator chose the API's own address, so it may be anywhere. A link in the API's answer comes
from a stranger: its host is resolved, the address checked, and the connection made to exactly the
address that was checked.
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

# Redirects that one download follows.
_MAX_REDIRECTS = 3
# The values that HTTP can send as a header.
_SENDABLE = re.compile(r"[!-~]+([ \t]+[!-~]+)*")
# Methods that usually cost nothing, so that they may be sent again.
_SAFE = ("GET", "HEAD", "DELETE")
Files = Mapping[str, tuple[str, bytes, str]]


@attrs.define
class Outbound:
    """The HTTP client for one vendor's API; it keeps connections, so close it at the end."""

    base_url: str = attrs.field(repr=False)
    """The operator's address of the API. Plain http and private networks are allowed. It is left
    out of the repr, because some operators put a key into it."""
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False, kw_only=True)
    """Sent with every request to the API, such as its key; never with a download."""
    hosts: tuple[str, ...] = attrs.field(default=(), kw_only=True)
    """Further hosts that may have the API's key, such as "*.example.com"."""
    max_bytes: int = attrs.field(default=64_000_000, kw_only=True)
    """The longest answer. A 4K PNG in Base64 has 45,000,000 bytes."""
    follows_loopback: bool = attrs.field(default=False, kw_only=True)
    """Whether `download` follows links to this machine, too: `GATEWAY_ALLOW_LOOPBACK_LINKS`."""
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
        """Send one request to the API; return its answer, whatever its status (`Answer.check`).

        `where` is a path below `base_url`, or an address that the API gave. Such an address must
        be below `base_url` too, or of one of `hosts`, because the API's key goes there.
        `files` are sent as a form: field to (name, bytes, media type). `bills` says whether the
        vendor may make something that costs money. Its default is False for GET, HEAD and DELETE
        and True for other methods; an upload or a login says False.
        Raises `Transient` if the request did not go out, or may be sent again without harm;
        `SubmitUncertain` if it may be billed, went out, and no whole answer came back;
        `AccountProblem` for a key that HTTP cannot send.
        """
        if not all(map(_SENDABLE.fullmatch, self.headers.values())):
            raise AccountProblem("The key cannot be sent: is there a line break or an odd letter?")
        transport = await self._open()
        options = transport.request_options(method, {**self.headers, **(headers or {})}, timeout_s)
        options |= {"json": json, "files": files}
        trace = SendTrace(method not in _SAFE if bills is None else bills)
        try:
            return await self._ask(transport, where, options, trace, timeout_s)
        except (transport.httpx.HTTPError, Transient, OSError, UnicodeError) as error:
            raise _error_without_answer(error, trace) from None
        except asyncio.CancelledError:
            # The attempt has timed out, or the gateway stops.
            if trace.is_uncertain:
                raise SubmitUncertain("Sent, and cut off before an answer came.") from None
            raise

    async def _ask(
        self,
        transport: Transport,
        where: str,
        options: Mapping[str, Any],
        trace: SendTrace,
        timeout_s: float,
    ) -> Answer:
        """Send a request and read its answer; note what the vendor said."""
        note_no_answer()
        sent = self._send(transport, where, options, trace)
        async with asyncio.timeout(timeout_s), sent as response:
            answer = await read_answer(response, max_bytes=self.max_bytes)
            note_answer(answer.status, answer.body)
            note_shape(options["method"], answer.status, answer.body)
            return attrs.evolve(answer, may_be_billed=trace.may_be_billed)

    async def download(self, url: str, *, timeout_s: float = 60.0) -> bytes:
        """Return the file that an API's answer links to; https only, without the API's headers.

        Redirects are followed within the link's host. Raises `ResultUnusable` for a file of more
        than `max_bytes`, and `LinkDead` for every other failure, such as a link to a private
        address or a redirect to another host.
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
        """Return the answer of a link after redirects within its host."""
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
        """Send a request below `base_url`, or to an address of one of the API's hosts."""
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
        """Return the transport, which the first request opens."""
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
    """Return what a request without a whole answer means for the task."""
    what = str(error) if isinstance(error, Transient) else type(error).__name__
    if trace.is_uncertain:
        return SubmitUncertain(f"Sent, and no answer came back: {what}")
    return Transient(f"No answer: {what}")
