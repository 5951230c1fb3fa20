"""HTTP to the facilitator: one fixed host, a fresh connection per request, no retries.

If a request on a reused connection fails, the facilitator may or may not have read it. Errors never
contain the address or a token, because both may be secret.
"""

import asyncio
import importlib
import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

from gateway import Settings, SettingsError, __version__
from gateway.settings import variable
from gateway_facilitator_settler.listings import HEADER as EXTENSIONS_HEADER
from gateway_facilitator_settler.tokens import bearer_of

_CONNECT_S = 5.0

# Seconds per call. `/settle` may wait for a block.
TIMEOUTS_S: Final = MappingProxyType({"/supported": 8.0, "/verify": 10.0, "/settle": 45.0})

# Real responses are below 1,000 bytes; a long list of networks has 20,000.
_MAX_BYTES = 65_536

# The address may have no user and no query, because neither would be signed.
_ADDRESS = re.compile(
    r"(?P<host>https?://([\w.-]+|\[[0-9a-f:]+\])(:\d{1,5})?)(?P<path>(/[\w.~%+-]*)*)",
    re.ASCII | re.IGNORECASE,
)

# The longest Retry-After to obey.
_MAX_WAIT_S = 300.0
_TOO_MANY = 429
_SERVER_ERROR = 500


class FacilitatorUnavailable(Exception):
    """No usable response: the facilitator may or may not have read the request."""

    def __init__(self, what: str, *, retry_after_s: float = 0.0) -> None:
        super().__init__(what)
        self.retry_after_s = retry_after_s


@attrs.frozen(kw_only=True)
class Answer:
    """A JSON object with its status: 200 to 499, except redirects and 429."""

    status: int
    body: Mapping[str, Any]

    # The header `EXTENSION-RESPONSES`, unchanged.
    extensions: str = ""


class FacilitatorClient:
    """The transport for the three calls. `timeouts_s` maps each path to its timeout in seconds."""

    def __init__(
        self,
        settings: Settings,
        now: Callable[[], float],
        *,
        timeouts_s: Mapping[str, float] = TIMEOUTS_S,
    ) -> None:
        self._base = _read_base(settings.facilitator_url)
        self._now = now
        self.timeouts_s = timeouts_s
        # With the path, as CDP's tokens name it.
        self._host = self._base.partition("://")[2]
        self._bearer = bearer_of(settings)
        self._httpx: Any = None
        self._tls: Any = None
        self._importing = asyncio.Lock()

    async def get(self, path: str) -> Answer:
        """Send a GET. Raises `FacilitatorUnavailable`."""
        return await self._request("GET", path, None)

    async def post(self, path: str, body: Mapping[str, Any]) -> Answer:
        """Send a POST. Raises `FacilitatorUnavailable`."""
        return await self._request("POST", path, json.dumps(body, separators=(",", ":")).encode())

    async def _request(self, method: str, path: str, content: bytes | None) -> Answer:
        await self._ensure_imported()
        try:
            async with asyncio.timeout(self.timeouts_s[path]):
                return await self._send(method, path, content)
        except (self._httpx.HTTPError, TimeoutError, OSError) as error:
            raise FacilitatorUnavailable(f"{path}: {type(error).__name__}") from None

    async def _send(self, method: str, path: str, content: bytes | None) -> Answer:
        timeout = self._httpx.Timeout(self.timeouts_s[path], connect=_CONNECT_S)
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
                    raise FacilitatorUnavailable(f"{path}: more than {_MAX_BYTES} bytes")
        return _read_answer(path, response.status_code, bytes(raw), response.headers)

    def _headers(self, request: str) -> dict[str, str]:
        headers = {
            "Accept": "application/json",
            # Without compression, a response cannot expand beyond the limit.
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": f"generation-gateway/{__version__}",
        }
        token = self._bearer(request, int(self._now()))
        return headers | ({"Authorization": f"Bearer {token}"} if token else {})

    async def _ensure_imported(self) -> None:
        """Import httpx2 and load the trusted certificates in a thread, on the first call."""
        async with self._importing:
            if self._httpx is None:
                self._httpx, self._tls = await asyncio.to_thread(_load)


def _load() -> tuple[Any, Any]:
    httpx = importlib.import_module("httpx2")
    # The context respects SSL_CERT_FILE. Proxies are ignored: the client has `trust_env=False`.
    return httpx, httpx.create_ssl_context()


def _read_base(address: str) -> str:
    """Return the base URL, with its own path if it has one.

    Raises `SettingsError` if it is empty, or has more than scheme, host and path.
    """
    name = variable("facilitator_url")
    example = f"Example: {name}=https://facilitator.example.com"
    if not address:
        raise SettingsError(
            f"{name} is not set. It is the address of the x402 facilitator that settles. {example}"
        )
    match = _ADDRESS.fullmatch(address)
    if match is None:
        raise SettingsError(
            f"{name} is wrong: it must be scheme, host and path, and nothing else. {example}"
        )
    return match["host"].lower() + match["path"].rstrip("/")


def _read_answer(path: str, status: int, raw: bytes, headers: Mapping[str, str]) -> Answer:
    """Raise `FacilitatorUnavailable` unless the response is a JSON object with a usable status."""
    if status == _TOO_MANY or status >= _SERVER_ERROR:
        raise FacilitatorUnavailable(
            f"{path}: status {status}", retry_after_s=_read_seconds(headers.get("Retry-After", ""))
        )
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise FacilitatorUnavailable(f"{path}: status {status} without JSON") from None
    if not isinstance(body, dict) or 300 <= status < 400:  # noqa: PLR2004 - a redirect
        raise FacilitatorUnavailable(f"{path}: status {status} is no answer")
    return Answer(status=status, body=body, extensions=headers.get(EXTENSIONS_HEADER, ""))


def _read_seconds(text: str) -> float:
    """Return the seconds in a Retry-After, capped; 0 for a date, which few servers send."""
    is_number = text.isascii() and text.isdigit() and len(text) < 9  # noqa: PLR2004 - three years
    return min(float(text), _MAX_WAIT_S) if is_number else 0.0
