"""HTTP client for vendor APIs: no automatic retries; sizes and times are limited.

The operator chose the base URL, so it may lead anywhere. A link in a response is untrusted, and
checked (`gateway.outputs.downloads`).
"""

import asyncio
import contextlib
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import attrs

from gateway.catalog.notes import note_billable, note_refusal
from gateway.errors import AccountProblem, SubmitUncertain, Transient
from gateway.outputs.downloads import Downloader, SendTrace, Transport, read_body
from gateway.outputs.links import check_link
from gateway_vendors.answer import Answer
from gateway_vendors.refusals import note_answer
from gateway_vendors.shapes import note_shape

# Valid header values in HTTP.
_SENDABLE = re.compile(r"[!-~]+([ \t]+[!-~]+)*")
# Methods that usually cost nothing, so that they may be repeated.
_SAFE = ("GET", "HEAD", "DELETE")
Files = Mapping[str, tuple[str, bytes, str]]


@attrs.define
class BillingTrace(SendTrace):
    """Also records whether part of the body may have been sent."""

    may_be_billed: bool = False
    """Whether the vendor may bill the request."""
    has_started: bool = False
    """Whether sending the body may have begun."""

    async def __call__(self, event: str, info: Mapping[str, Any]) -> None:
        """Handle a trace event, named as in httpcore."""
        await super().__call__(event, info)
        if event.endswith("send_request_body.started"):
            self.has_started = True
            if self.may_be_billed:
                note_billable()

    @property
    def is_uncertain(self) -> bool:
        """Whether the vendor may produce and bill something even if no response arrives."""
        return self.has_started and self.may_be_billed


@attrs.define
class Outbound(Downloader):
    """An HTTP client for one vendor's API. It keeps connections, so close it at the end."""

    base_url: str = attrs.field(repr=False)
    """The API's base URL, set by the operator. Plain http and private networks are allowed. Left
    out of the repr, because some operators put a key into it."""
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False, kw_only=True)
    """Sent with every request to the API, such as its key, but never with a download."""
    hosts: tuple[str, ...] = attrs.field(default=(), kw_only=True)
    """Other hosts that may receive the API's key, such as "*.example.com"."""

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
        trace = BillingTrace(method not in _SAFE if bills is None else bills)
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
        trace: BillingTrace,
        timeout_s: float,
    ) -> Answer:
        """Send a request, and record the response for diagnostics."""
        note_refusal(None)  # The latest request has no response yet.
        sent = self._send(transport, where, options, trace)
        async with asyncio.timeout(timeout_s), sent as response:
            body = await read_body(response, max_bytes=self.max_bytes)
            note_answer(response.status_code, body)
            note_shape(options["method"], response.status_code, body)
            return Answer(
                status=response.status_code,
                headers=dict(response.headers),
                body=body,
                may_be_billed=trace.may_be_billed,
            )

    def _send(
        self, transport: Transport, where: str, options: Mapping[str, Any], trace: BillingTrace
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


def _error_without_answer(error: Exception, trace: BillingTrace) -> SubmitUncertain | Transient:
    reason = str(error) if isinstance(error, Transient) else type(error).__name__
    if trace.is_uncertain:
        return SubmitUncertain(f"Sent, and no answer came back: {reason}")
    return Transient(f"No answer: {reason}")
