"""A buyer's requests to one gateway. Each is sent once, and responses are bounded."""

import hashlib
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import attrs

from gateway.errors import LinkDead, ResultUnusable, Transient
from gateway.outputs.downloads import REDIRECTS
from gateway.vendors import Answer, Outbound
from gateway_buyer.answers import (
    Manifest,
    Offer,
    Output,
    Started,
    Task,
    read_json,
    read_refusal,
    shorten,
)
from gateway_buyer.errors import NotBought, Unanswered, Unfinished, Unreachable
from gateway_buyer.records import Record
from gateway_buyer.terms import Terms, read_terms

MAX_OUTPUT_BYTES = 50_000_000
_MAX_JSON_BYTES = 1_000_000
_PORTS = {"https": 443, "http": 80}
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_OK, _INVALID, _PAYMENT_REQUIRED, _NOT_FOUND = 200, 400, 402, 404
# The gateway may take 20 seconds to settle before it responds.
_PAID_S = 60.0
_UNPAID_S = 60.0
_DOWNLOAD_S = 300.0
# A gateway responds to `?wait=` within these seconds; the margin is for a slow connection.
_WAIT_S = 20
_WAIT_MARGIN_S = 20.0
# Statuses that decide nothing: the same request may succeed later.
_PASSING = (408, 425, 429, *range(500, 600))
_MAX_RETRY_AFTER_S = 120
_MAX_RETRY_AFTER_DIGITS = 8
_MISSING = re.compile(r"(\w{1,40}) is missing")
# No spaces, and nothing that looks like another character.
_URL = re.compile(r"[!-~]+")
_SAMPLE = "give a URL such as https://gateway.example.com"
_HOST = re.compile(r"[0-9a-z._-]+|[0-9a-f:.]+")
# The buyer's names of the request's fields.
_OPTIONS = {
    "prompt": "a prompt",
    "fileBase64": "--file",
    "fileName": "--file",
    "aspect_ratio": "--aspect-ratio",
    "output_format": "--format",
    "resolution": "--resolution",
}


def is_loopback(url: str) -> bool:
    """Whether the URL leads to this machine."""
    return urlsplit(url).hostname in _LOOPBACK


def check_url(url: str) -> str:
    """Return a gateway's URL in one spelling: purchases are found by it.

    Raises `ValueError` with a sentence for a URL that must not be used.
    """
    try:
        parts = urlsplit(url.rstrip("/"))
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    if not _URL.fullmatch(url):
        raise ValueError("write the URL in ASCII, without spaces: names as xn--…, others as %20")
    is_host = _HOST.fullmatch(host or "") is not None
    if not host or not is_host or port == 0:
        raise ValueError(_SAMPLE)
    if parts.query or parts.fragment or parts.username is not None:
        raise ValueError(_SAMPLE)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(url)):
        raise ValueError("the URL must begin with https://, except on this machine")
    host = f"[{host}]" if ":" in host else host
    is_usual = port in (None, _PORTS[parts.scheme])
    return f"{parts.scheme}://{host}{'' if is_usual else f':{port}'}{parts.path}"


@attrs.define
class GatewayClient:
    """One gateway, as an asynchronous context manager."""

    url: str
    _small: Outbound = attrs.field(init=False, repr=False)
    _large: Outbound = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._small = Outbound(self.url, max_bytes=_MAX_JSON_BYTES)
        # For files, and for tasks, which include the text of a document.
        self._large = Outbound(self.url, max_bytes=MAX_OUTPUT_BYTES)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self._small.close()
        await self._large.close()

    async def list_offers(self) -> list[Offer]:
        """Return the endpoints on sale; raises `NotBought` and `Unanswered`."""
        where = "/.well-known/agent-manifest.json"
        answer = await _send(self._small, "GET", where, timeout_s=_UNPAID_S)
        _check_passing(answer)
        manifest = read_json(answer.body, Manifest) if answer.status == _OK else None
        if manifest is None:
            raise NotBought(_describe(answer, "There is no list of offers at this address"))
        return manifest.available_endpoints

    async def ask_price(self, slug: str, body: Mapping[str, Any]) -> Terms:
        """Return the terms of a request; raises `NotBought` and `Unanswered`."""
        answer = await self._post(slug, body, {}, _UNPAID_S)
        if answer.status == _PAYMENT_REQUIRED:
            return read_terms(answer.headers.get("payment-required"), read_refusal(answer.body))
        _check_passing(answer)
        raise NotBought(_explain_unsold(answer, slug))

    async def pay(self, record: Record, body: Mapping[str, Any]) -> str:
        """Send a signed payment and return the task's id.

        Raises `NotBought` if the gateway refuses, and `Unanswered` if the same payment may be sent
        again.
        """
        headers = {"PAYMENT-SIGNATURE": record.payment, "Idempotency-Key": record.key}
        answer = await self._post(record.slug, body, headers, _PAID_S)
        if answer.status == _OK:
            started = read_json(answer.body, Started)
            if started is None:
                raise Unanswered("The gateway took the payment but named no task.")
            return started.task_id
        _check_passing(answer)
        raise NotBought(_describe(answer, "The gateway says that it did not take the payment"))

    async def poll(self, task_id: str) -> Task:
        """Return a task once it is done, or in its current state after 20 seconds.

        Raises `Unfinished` for an unknown task, and `Unanswered` if a retry may help.
        """
        timeout_s = _WAIT_S + _WAIT_MARGIN_S
        where = f"/api/task/{task_id}?wait={_WAIT_S}"
        answer = await _send(self._large, "GET", where, timeout_s=timeout_s)
        if answer.status == _OK:
            task = read_json(answer.body, Task)
            if task is None or task.task_id != task_id:
                raise Unanswered("The gateway's response is not this task.")
            return task
        _check_passing(answer)
        raise Unfinished(_describe(answer, "The gateway does not show this task"))

    async def fetch(self, output: Output) -> bytes:
        """Return a file of the promised length and checksum.

        Raises `Unanswered` if a retry may help, otherwise `Unfinished`.
        """
        if output.url is None:
            raise Unfinished("The gateway has deleted the files: it keeps them for a limited time.")
        if output.size_bytes > MAX_OUTPUT_BYTES:
            raise Unfinished(
                f"A file has {output.size_bytes:,} bytes. This program saves up to "
                f"{MAX_OUTPUT_BYTES:,}; fetch it by hand from {shorten(output.url)}"
            )
        content = await self._fetch_link(output.url)
        is_promised = hashlib.sha256(content).hexdigest() == output.sha256.lower()
        if len(content) != output.size_bytes or not is_promised:
            raise Unanswered("The file is not the one that the gateway promised (SHA-256).")
        return content

    async def _fetch_link(self, url: str) -> bytes:
        own = _own_path(self.url, url)
        if own is not None:
            answer = await _send(self._large, "GET", own, timeout_s=_DOWNLOAD_S)
            if answer.status != _OK:
                raise Unanswered(_describe(answer, "The gateway does not deliver the file"))
            return answer.body
        try:
            return await self._large.download(url, timeout_s=_DOWNLOAD_S)
        except LinkDead as error:
            raise Unanswered(shorten(str(error))) from None
        except ResultUnusable as error:
            raise Unfinished(shorten(str(error))) from None

    async def _post(
        self, slug: str, body: Mapping[str, Any], headers: Mapping[str, str], timeout_s: float
    ) -> Answer:
        where = f"/api/x402/{slug}"
        return await _send(
            self._small, "POST", where, json=body, headers=headers, timeout_s=timeout_s
        )


async def _send(outbound: Outbound, method: str, where: str, **options: Any) -> Answer:
    try:
        return await outbound.request(method, where, bills=False, **options)
    except Transient as error:
        _check_reached(outbound.base_url, error)
        raise Unanswered(shorten(str(error))) from None


def _check_reached(url: str, error: Exception) -> None:
    """Raise `Unreachable` if a request failed before it was sent."""
    host = urlsplit(url).hostname
    for cause in _causes(error):
        if isinstance(cause, ConnectionRefusedError):
            raise Unreachable(f"Nothing listens at {url}.") from None
        if isinstance(cause, socket.gaierror):
            raise Unreachable(f"The host {host} is not found ({cause.strerror}).") from None
        if isinstance(cause, ssl.SSLCertVerificationError):
            reason = shorten(cause.verify_message)
            raise Unreachable(f"The certificate of {host} is not valid ({reason}).") from None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, the error behind it, and so on."""
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__ or found.__context__


def _check_passing(answer: Answer) -> None:
    """Raise `Unanswered` if the same request may succeed later."""
    if answer.status in _PASSING:
        text = answer.headers.get("retry-after", "")
        is_number = text.isascii() and text.isdigit() and len(text) <= _MAX_RETRY_AFTER_DIGITS
        wait_s = min(int(text), _MAX_RETRY_AFTER_S) if is_number else 0
        raise Unanswered(_describe(answer, "The gateway cannot answer now"), retry_after_s=wait_s)


def _describe(answer: Answer, what: str) -> str:
    """Return a sentence about a response, with the gateway's own message."""
    if answer.status in REDIRECTS:
        return f"{what}: it redirects (status {answer.status}), and redirects are not followed."
    words = read_refusal(answer.body).rstrip(".")
    return f"{what} (status {answer.status}{f': {words}' if words else ''})."


def _explain_unsold(answer: Answer, slug: str) -> str:
    """Return why the gateway names no price for a request."""
    if answer.status == _INVALID:
        words = read_refusal(answer.body)
        missing = _MISSING.search(words)
        if missing is not None and missing[1] in _OPTIONS:
            return f"{slug} needs {_OPTIONS[missing[1]]}. Nothing was signed."
        return _describe(answer, "The gateway refuses this request")
    if answer.status == _NOT_FOUND:
        return _describe(answer, f"The gateway does not sell {slug}")
    return _describe(answer, "The gateway names no price")


def _own_path(base: str, url: str) -> str | None:
    """Return path and query of a link to the gateway itself, relative to the base.

    None for a link elsewhere. Raises `Unanswered` for an invalid link.
    """
    own = urlsplit(base)
    try:
        link = urlsplit(url)
        is_same_port = (link.scheme, link.port) == (own.scheme, own.port)
    except ValueError:
        raise Unanswered("The link to the file is not a URL.") from None
    is_same_host = link.hostname == own.hostname or (is_loopback(base) and is_loopback(url))
    if not is_same_port or not is_same_host or not link.path.startswith(f"{own.path}/"):
        return None
    path = link.path.removeprefix(own.path)
    return f"{path}?{link.query}" if link.query else path
