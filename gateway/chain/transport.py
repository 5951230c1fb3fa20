"""web3's HTTP provider over kept connections, without web3's own session manager.

That opens a connection for every call, and waits for a lock in a thread that all providers
share: a call cancelled there leaves the lock taken, and the chain is silent for ever after.
Imported with web3, after the start.
"""

from collections.abc import Mapping
from typing import Any

import aiohttp
from web3 import AsyncHTTPProvider

from gateway.chain.retries import EndpointRefused

_BUSY = (408, 425, 429)  # statuses after which the same call may succeed
_SERVER_ERROR = 500
_CONNECTIONS = 100
_KEEP_ALIVE_S = 4.0  # Node's servers close an idle connection after 5


class KeepAliveProvider(AsyncHTTPProvider):
    """One endpoint, one session."""

    def __init__(self, url: str) -> None:
        super().__init__(url, exception_retry_configuration=None)
        self._session = aiohttp.ClientSession(
            raise_for_status=True,
            headers=self.get_request_headers(),
            connector=aiohttp.TCPConnector(limit=_CONNECTIONS, keepalive_timeout=_KEEP_ALIVE_S),
        )

    async def _make_request(self, method: Any, request_data: bytes) -> bytes:  # noqa: ARG002 - web3's
        """Post once more where a kept connection had died: reads and signed bytes may repeat.

        Raises `EndpointRefused` where the endpoint has nothing against the call itself.
        """
        try:
            return await self._post_twice(request_data)
        except aiohttp.ClientResponseError as error:
            if error.status not in _BUSY and error.status < _SERVER_ERROR:
                raise
            raise EndpointRefused(
                f"status {error.status}", retry_after_s=_retry_after_s(error.headers)
            ) from None
        except aiohttp.ClientConnectionError as error:
            raise EndpointRefused(type(error).__name__) from None

    async def _post_twice(self, data: bytes) -> bytes:
        try:
            return await self._post(data)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            return await self._post(data)

    async def _post(self, data: bytes) -> bytes:
        async with self._session.post(str(self.endpoint_uri), data=data) as answer:
            return await answer.read()

    async def disconnect(self) -> None:
        """Close the connections."""
        await self._session.close()


def _retry_after_s(headers: Mapping[str, str] | None) -> float:
    """Return the seconds that `Retry-After` asks for; a date counts as none."""
    wish = (headers or {}).get("Retry-After", "")
    return float(wish) if wish.isascii() and wish.isdigit() else 0.0
