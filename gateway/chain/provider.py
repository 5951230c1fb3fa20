"""web3's HTTP provider over kept connections, without web3's own session manager.

That opens a connection for every call, and waits for a lock in a thread that all providers
share: a call cancelled there leaves the lock taken, and the chain is silent for ever after.
Imported with web3, after the start.
"""

from typing import Any

import aiohttp
from web3 import AsyncHTTPProvider

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
        """Post once more where a kept connection had died: reads and signed bytes may repeat."""
        try:
            return await self._post(request_data)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            return await self._post(request_data)

    async def _post(self, data: bytes) -> bytes:
        async with self._session.post(str(self.endpoint_uri), data=data) as answer:
            return await answer.read()

    async def disconnect(self) -> None:
        """Close the connections."""
        await self._session.close()
