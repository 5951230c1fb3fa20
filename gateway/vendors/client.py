"""The HTTP client that providers are given: nothing repeated, everything capped, no way inside.

An API's own address is the operator's choice. A link that an API returned is a stranger's: it is
resolved, checked, and connected to at the very address that was checked.
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
from gateway.vendors.links import check_link
from gateway.vendors.transport import Sending, TooLarge, Transport, opened, read

_HOPS = 3  # redirects of a download
_SENDABLE = re.compile(r"[!-~]+([ \t]+[!-~]+)*")  # what HTTP can send as a header's value
_SAFE = ("GET", "HEAD", "DELETE")  # methods that mostly may be sent again without harm
Files = Mapping[str, tuple[str, bytes, str]]


@attrs.define
class Outbound:
    """One API's HTTP client; connections are kept between requests, so close it at the end.

    The base URL is the operator's, so it may be plain http and on a private network.
    """

    base_url: str = attrs.field(repr=False)  # some put a key into it
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False, kw_only=True)
    hosts: tuple[str, ...] = attrs.field(default=(), kw_only=True)  # also its: "*.example.com"
    max_bytes: int = attrs.field(default=64_000_000, kw_only=True)  # a 4K PNG in Base64 has 45
    tls: ssl.SSLContext | None = attrs.field(default=None, repr=False, kw_only=True)
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
        """Ask the API once, at a path below `base_url` or an address it gave; any status.

        Such an address must be below `base_url` too, or of one of `hosts`: the API's key goes
        there. `files` are sent as a form: field to (name, bytes, media type). `bills` says
        whether the request may have something made that costs money: unless told, a GET, HEAD or
        DELETE may not and any other may, although an upload or a login does not.
        Raises `Transient` where the request did not go out, or may be sent again without harm;
        `SubmitUncertain` where it went out and no whole answer came back; `AccountProblem` for a
        key that cannot be sent. `Answer.check` tells a status that leaves open what was made.
        """
        if not all(map(_SENDABLE.fullmatch, self.headers.values())):
            raise AccountProblem("The key cannot be sent: is there a line break or an odd letter?")
        transport = await self._open()
        order = transport.order(method, {**self.headers, **(headers or {})}, timeout_s)
        sending = Sending(method not in _SAFE if bills is None else bills)
        try:
            asked = self._asked(transport, where, order | {"json": json, "files": files}, sending)
            async with asyncio.timeout(timeout_s), asked as response:
                answer = await read(response, max_bytes=self.max_bytes)
                return attrs.evolve(answer, may_be_billed=sending.may_be_billed)
        except (transport.httpx.HTTPError, Transient, OSError, UnicodeError) as error:
            what = str(error) if isinstance(error, Transient) else type(error).__name__
            if sending.is_uncertain:
                raise SubmitUncertain(f"Sent, and no answer came back: {what}") from None
            raise Transient(f"No answer: {what}") from None
        except asyncio.CancelledError:  # by the attempt's time-out, or because the gateway stops
            if sending.is_uncertain:
                raise SubmitUncertain("Sent, and cut off before an answer came.") from None
            raise

    async def download(self, url: str, *, timeout_s: float = 60.0) -> bytes:
        """Fetch what an API's answer links to, without this API's headers; https only.

        Raises `ResultUnusable` for a file beyond `max_bytes`, `LinkDead` for every other failure,
        also where the link leads to a private address or is redirected to another host.
        """
        transport = await self._open()
        try:
            async with asyncio.timeout(timeout_s):
                answer = await self._followed(transport, url, timeout_s)
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

    async def _followed(self, transport: Transport, url: str, timeout_s: float) -> Answer:
        """Return what a link answers, after redirects within its host."""
        link = transport.url(url)
        host = link.host
        order = transport.order("GET", {}, timeout_s)
        for _ in range(1 + _HOPS):
            check_link(link, host)
            async with transport.pinned(link, order, Sending()) as response:
                if response.status_code not in REDIRECTS:
                    return await read(response, max_bytes=self.max_bytes)
                try:
                    link = link.join(response.headers.get("location", ""))
                except transport.httpx.InvalidURL:
                    raise Transient("The link to the result leads nowhere.") from None
        raise Transient("The link to the result is redirected too often.")

    def _asked(
        self, transport: Transport, where: str, order: Mapping[str, Any], sending: Sending
    ) -> contextlib.AbstractAsyncContextManager[Any]:
        """Send to the API itself, or to the address of one of its hosts."""
        base = self.base_url.rstrip("/")
        if where.startswith("/"):
            return transport.direct(transport.url(base + where), order, sending)
        if where == base or where.startswith((f"{base}/", f"{base}?")):
            return transport.direct(transport.url(where), order, sending)
        link = transport.url(where)
        check_link(link, link.host)
        own = transport.url(base).host
        if link.host != own and not any(fnmatchcase(link.host, host) for host in self.hosts):
            raise Transient("The provider gave an address of a host that is not its own.")
        return transport.pinned(link, order, sending)

    async def _open(self) -> Transport:
        """Return the connections, opened at the first request."""
        async with self._opening:
            if self._transport is None:
                self._transport = await opened(self.tls)
            return self._transport

    async def close(self) -> None:
        """Hang up; a later request opens new connections."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.close()
