"""web3's HTTP provider over kept connections, without web3's own session manager.

web3's manager opens a connection for every call, and waits for a lock in a thread that all
providers share. A call that is cancelled there leaves the lock taken, and from then on every call
waits for ever. This module imports web3, so it is imported after the start.
"""

import itertools
import json
from collections.abc import Mapping
from typing import Any

import aiohttp
from web3 import AsyncHTTPProvider

from gateway.chain.retries import EndpointRefused

# After these statuses the same call may succeed.
_BUSY = (408, 425, 429)
_CLIENT_ERROR = 400
_ABOUT_THE_CALL = (400, 413, 422)
_SERVER_ERROR = 500
_CONNECTIONS = 100
_CONNECT_S = 30.0
# Servers on Node close an idle connection after 5 seconds.
_KEEP_ALIVE_S = 4.0


class KeepAliveProvider(AsyncHTTPProvider):
    """One endpoint, one session."""

    def __init__(self, url: str) -> None:
        super().__init__(url, exception_retry_configuration=None)
        self._ids = itertools.count()
        self._session = aiohttp.ClientSession(
            # The caller bounds each call; aiohttp would start a timer of its own for each.
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
            headers=self.get_request_headers(),
            connector=aiohttp.TCPConnector(limit=_CONNECTIONS, keepalive_timeout=_KEEP_ALIVE_S),
        )

    async def make_request(self, method: Any, params: Any) -> Any:
        """Return the answer to a JSON-RPC request, as web3 does without its cache of answers.

        Raises `EndpointRefused` if the endpoint was busy, broken or not reached, so that the
        same call may succeed later, `TypeError` for parameters that are no JSON, and `ValueError`
        for an answer that is none.
        """
        # web3's encoder checks each value for its own types; our parameters are plain JSON.
        asked = {"jsonrpc": "2.0", "method": method, "params": params, "id": next(self._ids)}
        try:
            return json.loads(str(await self._post_twice(json.dumps(asked).encode()), "utf-8"))
        except aiohttp.ClientConnectionError as error:
            raise EndpointRefused(type(error).__name__) from None

    async def _post_twice(self, data: bytes) -> bytes:
        """Post again if a kept connection was closed: reads and signed bytes may be repeated."""
        try:
            return await self._post(data)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            return await self._post(data)

    async def _post(self, data: bytes) -> bytes:
        """Return the JSON-RPC answer; raises `EndpointRefused` and `ValueError`."""
        async with self._session.post(str(self.endpoint_uri), data=data) as answer:
            body = await answer.read()
        if answer.status < _CLIENT_ERROR:
            return body
        return json.dumps(_read_failed(answer.status, answer.headers, body)).encode()

    async def disconnect(self) -> None:
        """Close the connections."""
        await self._session.close()


def _read_failed(status: int, headers: Mapping[str, str], body: bytes) -> Any:
    """Return the JSON-RPC error that came with a status of failure: vendors send them with 400.

    Raises as `make_request` does; what came with a status that may pass is in the error.
    """
    answer = _read_error(body)
    if status in _BUSY or status >= _SERVER_ERROR:
        wish_s = _retry_after_s(headers)
        raise EndpointRefused(f"status {status}", retry_after_s=wish_s, answer=answer)
    if answer is None and status in _ABOUT_THE_CALL:
        words = body[:200].decode("utf-8", "replace") or "The answer would be too large."
        answer = {"error": {"message": words}}
    if answer is None:
        raise ValueError(f"status {status}")
    return answer


def _read_error(body: bytes) -> dict[str, Any] | None:
    """Return an answer with an error, also one in a list of one or without its envelope."""
    try:
        answer = json.loads(str(body, "utf-8-sig"))
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
    """Return the seconds that `Retry-After` asks for; 0 for a date."""
    wish = headers.get("Retry-After", "")
    return float(wish) if wish.isascii() and wish.isdigit() else 0.0
