"""HTTP to the facilitator: one fixed host, a fresh connection each time, nothing ever repeated.

A kept connection may be dead without our knowing, and then nobody can tell whether a request
that failed was read. No error here names the address or a token: both may be secrets.
"""

import asyncio
import importlib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from gateway import Settings, SettingsError, __version__
from gateway.settings import variable
from gateway_facilitator_settler.tokens import bearer_of

_CONNECT_S = 5.0
_TIMEOUT_S = {"/supported": 8.0, "/verify": 10.0, "/settle": 45.0}  # it may wait for a block
_MAX_BYTES = 65_536  # real answers have under 1,000, a long list of networks 20,000
_ADDRESS = re.compile(
    r"(?P<host>https?://([\w.-]+|\[[0-9a-f:]+\])(:\d{1,5})?)(?P<path>(/[\w.~%+-]*)*)",
    re.ASCII | re.IGNORECASE,
)  # no user, no query: neither would be part of what is signed
_MAX_WAIT_S = 300.0  # that a facilitator may ask for
_TOO_MANY = 429
_SERVER_ERROR = 500


class FacilitatorSilent(Exception):
    """No answer that tells anything: whether it read the request, nobody knows."""

    def __init__(self, what: str, *, retry_after_s: float = 0.0) -> None:
        super().__init__(what)
        self.retry_after_s = retry_after_s


@attrs.frozen(kw_only=True)
class Answer:
    """A JSON object, and the status it came with: 200 to 499, no redirect and no 429."""

    status: int
    body: Mapping[str, Any]


class FacilitatorClient:
    """The three calls' transport. Tests may put another in its place."""

    def __init__(self, settings: Settings, now: Callable[[], float]) -> None:
        self._base = _base(settings.facilitator_url)
        self._now = now
        self._host = self._base.partition("://")[2]  # with the path, as CDP's tokens name it
        self._bearer = bearer_of(settings)
        self._httpx: Any = None
        self._tls: Any = None
        self._importing = asyncio.Lock()

    async def get(self, path: str) -> Answer:
        """Return the answer to a GET; raises `FacilitatorSilent`."""
        return await self._ask("GET", path, None)

    async def post(self, path: str, body: Mapping[str, Any]) -> Answer:
        """Return the answer to a POST; raises `FacilitatorSilent`."""
        return await self._ask("POST", path, json.dumps(body, separators=(",", ":")).encode())

    async def _ask(self, method: str, path: str, content: bytes | None) -> Answer:
        await self._import()
        try:
            async with asyncio.timeout(_TIMEOUT_S[path]):
                return await self._send(method, path, content)
        except (self._httpx.HTTPError, TimeoutError, OSError) as error:
            raise FacilitatorSilent(f"{path}: {type(error).__name__}") from None

    async def _send(self, method: str, path: str, content: bytes | None) -> Answer:
        """Send one request and read its answer, up to the limit."""
        timeout = self._httpx.Timeout(_TIMEOUT_S[path], connect=_CONNECT_S)
        client = self._httpx.AsyncClient(
            verify=self._tls, timeout=timeout, follow_redirects=False, trust_env=False
        )
        url, headers = self._base + path, self._headers(f"{method} {self._host}{path}")
        async with (
            client,
            client.stream(method, url, headers=headers, content=content) as response,
        ):
            raw = bytearray()
            async for piece in response.aiter_raw():
                raw += piece
                if len(raw) > _MAX_BYTES:
                    raise FacilitatorSilent(f"{path}: more than {_MAX_BYTES} bytes")
        return _answer(path, response.status_code, bytes(raw), response.headers)

    def _headers(self, request: str) -> dict[str, str]:
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",  # what is not packed cannot swell past the limit
            "Content-Type": "application/json",
            "User-Agent": f"generation-gateway/{__version__}",
        }
        token = self._bearer(request, int(self._now()))
        return headers | ({"Authorization": f"Bearer {token}"} if token else {})

    async def _import(self) -> None:
        """Load httpx2 and the trusted certificates in a thread, at the first call."""
        async with self._importing:
            if self._httpx is None:
                self._httpx, self._tls = await asyncio.to_thread(_load)


def _load() -> tuple[Any, Any]:
    httpx = importlib.import_module("httpx2")
    return httpx, httpx.create_ssl_context()  # SSL_CERT_FILE counts, proxies do not


def _base(address: str) -> str:
    """Return the address that paths are added to; the path it has itself is kept.

    Raises `SettingsError` where there is none, or more than scheme, host and path.
    """
    name = variable("facilitator_url")
    example = f"Example: {name}=https://facilitator.example.com"
    if not address:
        raise SettingsError(
            f"{name} is not set. It is the x402 facilitator that settles. {example}"
        )
    match = _ADDRESS.fullmatch(address)
    if match is None:
        raise SettingsError(
            f"{name} is not right: scheme, host and path, and nothing else. {example}"
        )
    return match["host"].lower() + match["path"].rstrip("/")


def _answer(path: str, status: int, raw: bytes, headers: Mapping[str, str]) -> Answer:
    """Return a JSON object; raises `FacilitatorSilent` for everything that is no answer."""
    if status == _TOO_MANY or status >= _SERVER_ERROR:
        raise FacilitatorSilent(
            f"{path}: status {status}", retry_after_s=_seconds(headers.get("Retry-After", ""))
        )
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise FacilitatorSilent(f"{path}: status {status} without JSON") from None
    if not isinstance(body, dict) or 300 <= status < 400:  # noqa: PLR2004 - a redirect
        raise FacilitatorSilent(f"{path}: status {status} is no answer")
    return Answer(status=status, body=body)


def _seconds(text: str) -> float:
    """Return the seconds of a Retry-After, up to a limit; a date, which few send, is none."""
    is_number = text.isascii() and text.isdigit() and len(text) < 9  # noqa: PLR2004 - three years
    return min(float(text), _MAX_WAIT_S) if is_number else 0.0
