"""web3's HTTP provider with keep-alive connections, without web3's session manager.

That manager opens a connection per call, and waits for a lock in a thread that all providers share.
A cancelled call leaves the lock taken, which blocks every later call for ever. This module imports
web3, so it is imported after the start.
"""

import asyncio
import codecs
import itertools
import json
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import msgspec
from web3 import AsyncHTTPProvider

from gateway.chain.retries import EndpointRefused

# Statuses that a retry may cure.
_BUSY = (408, 425, 429)
_CLIENT_ERROR = 400
_ABOUT_THE_CALL = (400, 413, 422)
_SERVER_ERROR = 500
_UNAVAILABLE = 503
_CONNECTIONS = 100
_CONNECT_S = 30.0
# Servers on Node close an idle connection after 5 seconds.
_KEEP_ALIVE_S = 4.0


class _Session:
    """An aiohttp session that ends its calls before it closes.

    aiohttp would raise `CancelledError` in tasks that wait for a name or for a free connection,
    though nothing has cancelled them, and leave calls on a dead connection waiting.
    """

    def __init__(self, client: aiohttp.ClientSession) -> None:
        self._client = client
        self._calls: set[asyncio.Timeout] = set()
        self._is_unused = asyncio.Event()
        self._is_unused.set()

    async def post(self, url: str, data: bytes) -> tuple[aiohttp.ClientResponse, bytes]:
        """Return the response and its body. Raises `TimeoutError` if `close` ended the call."""
        async with asyncio.timeout(None) as call:
            self._calls.add(call)
            self._is_unused.clear()
            try:
                async with self._client.post(url, data=data) as answer:
                    return answer, await answer.read()
            finally:
                self._calls.discard(call)
                if not self._calls:
                    self._is_unused.set()

    async def close(self) -> None:
        """End the calls, and close the connections."""
        for call in self._calls:
            call.reschedule(0.0)
        try:
            await self._is_unused.wait()
        finally:
            await self._client.close()


class KeepAliveProvider(AsyncHTTPProvider):
    """One endpoint, one session."""

    def __init__(self, url: str) -> None:
        super().__init__(url, exception_retry_configuration=None)
        self._ids = itertools.count()
        # The newest response's `Date`, and when it came, in loop time.
        self._dated: tuple[str, float] | None = None
        self._session = self._open_session()

    def _open_session(self) -> _Session:
        client = aiohttp.ClientSession(
            # The caller limits each call; aiohttp's own timeout would add a timer to each.
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
            headers=self.get_request_headers(),
            connector=aiohttp.TCPConnector(limit=_CONNECTIONS, keepalive_timeout=_KEEP_ALIVE_S),
        )
        return _Session(client)

    async def make_request(self, method: Any, params: Any) -> Any:
        """Send a JSON-RPC request, as web3 does but without its cache.

        Raises `EndpointRefused` if the endpoint is busy, broken or unreachable, and `ValueError`
        for a response that is not JSON. The parameters must be.
        """
        # web3's encoder checks each value for its own types; msgspec would make Base64 of bytes.
        asked = {"jsonrpc": "2.0", "method": method, "params": params, "id": next(self._ids)}
        try:
            return _decode(await self._post_renewed(msgspec.json.encode(asked)))
        except aiohttp.ClientConnectionError as error:
            is_unreachable = isinstance(error, aiohttp.ClientConnectorError)
            raise EndpointRefused(type(error).__name__, is_general=is_unreachable) from None

    async def _post_renewed(self, data: bytes) -> bytes:
        """Send a call again that `renew` has ended: all our calls are idempotent."""
        while True:
            session = self._session
            try:
                return await self._post_twice(data)
            except TimeoutError:
                if session is self._session:
                    raise

    async def _post_twice(self, data: bytes) -> bytes:
        """Retry once if a keep-alive connection was closed."""
        try:
            return await self._post(data)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            return await self._post(data)

    async def _post(self, data: bytes) -> bytes:
        answer, body = await self._session.post(str(self.endpoint_uri), data)
        if date := answer.headers.get("Date"):
            self._dated = date, asyncio.get_running_loop().time()
        if answer.status < _CLIENT_ERROR:
            return body
        return json.dumps(_read_failed(answer.status, answer.headers, body)).encode()

    def server_time(self) -> float | None:
        """Return the endpoint's own clock now, in Unix seconds, or None if it sends no `Date`."""
        if self._dated is None:
            return None
        date, at = self._dated
        try:
            sent = parsedate_to_datetime(date).timestamp()
        except ValueError:
            return None
        return sent + asyncio.get_running_loop().time() - at

    async def renew(self) -> None:
        """Open a new session, and close the old one; its calls are sent again on the new one.

        After a standstill the other side may have closed the connections without a sign, and the
        endpoint's clock counts from before it.
        """
        old, self._session, self._dated = self._session, self._open_session(), None
        await old.close()

    async def disconnect(self) -> None:
        """Close the connections."""
        await self._session.close()


def _decode(body: bytes) -> Any:
    """Decode JSON; slowly what msgspec refuses, such as half a surrogate in a revert's message."""
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return json.loads(body.decode())


def _read_failed(status: int, headers: Mapping[str, str], body: bytes) -> Any:
    """Return the JSON-RPC error in an HTTP error response: vendors send some with status 400.

    Raises as `make_request` does; an `EndpointRefused` contains the JSON-RPC error.
    """
    answer = _read_error(body)
    if status in _BUSY or status >= _SERVER_ERROR:
        raise EndpointRefused(
            f"status {status}",
            retry_after_s=_retry_after_s(headers),
            answer=answer,
            is_general=status in (*_BUSY, _UNAVAILABLE),
        )
    if answer is None and status in _ABOUT_THE_CALL:
        words = body[:200].decode("utf-8", "replace") or "The answer would be too large."
        answer = {"error": {"message": words}}
    if answer is None:
        raise ValueError(f"status {status}")
    return answer


def _read_error(body: bytes) -> dict[str, Any] | None:
    """Parse a JSON-RPC error, also in a list of one or without its envelope."""
    try:
        answer = _decode(body.removeprefix(codecs.BOM_UTF8))
    except ValueError:
        return None
    if isinstance(answer, list) and len(answer) == 1:
        (answer,) = answer
    if not isinstance(answer, dict):
        return None
    if answer.get("error"):
        return answer
    return {"error": answer} if answer.get("message") else None


def _retry_after_s(headers: Mapping[str, str]) -> float:
    """Return the seconds in `Retry-After`; 0 for a date."""
    value = headers.get("Retry-After", "")
    return float(value) if value.isascii() and value.isdigit() else 0.0
