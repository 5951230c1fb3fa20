"""Requests to the operator's URLs: the alarm webhook and the heartbeat.

Unlike a buyer's URL, it may be in a private network. Only there is plain http allowed, because an
alarm could be read on its way through the internet. Redirects are not followed, and only the status
of a response is used.
"""

import asyncio
import functools
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from gateway.concurrency.threads import run_in_daemon
from gateway.errors import Transient
from gateway.outputs.downloads import SendTrace, Transport, open_transport
from gateway.outputs.links import is_public

_PORTS = {"http": 80, "https": 443}
Resolve = Callable[..., Sequence[Any]]


class RequestFailed(Exception):
    """The request failed; the text gives the reason, without the URL."""


@attrs.define(kw_only=True)
class OperatorUrl:
    """One URL."""

    url: str = attrs.field(repr=False)
    # From DNS lookup to response status.
    timeout_s: float = 10.0
    # None: the system's trusted certificates.
    tls: ssl.SSLContext | None = attrs.field(default=None, repr=False)
    resolve: Resolve = socket.getaddrinfo

    async def request(
        self, method: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        """Send one request; raises `RequestFailed` unless the status is 2xx."""
        # Alarms are rare, so no connection is kept open.
        transport = await open_transport(self.tls)
        try:
            async with asyncio.timeout(self.timeout_s):
                status = await self._ask(transport, method, body, headers or {})
        except Transient as error:
            raise RequestFailed(str(error)) from None
        except TimeoutError:
            raise RequestFailed("No answer came in time.") from None
        except (transport.httpx.HTTPError, OSError, UnicodeError) as error:
            raise RequestFailed(f"The request failed: {type(error).__name__}.") from None
        finally:
            await transport.close()
        if not 200 <= status < 300:  # noqa: PLR2004 - HTTP's success
            raise RequestFailed(f"Status {status}.")

    async def _ask(
        self, transport: Transport, method: str, body: bytes, headers: Mapping[str, str]
    ) -> int:
        link = transport.url(self.url)
        options = transport.request_options(method, headers, self.timeout_s) | {"content": body}
        addresses = await self._find_addresses(link)
        async with transport.pinned(link, options, SendTrace(), addresses) as response:
            status: int = response.status_code
            return status

    async def _find_addresses(self, link: Any) -> list[str]:
        """Return the host's IP addresses; raises `Transient` for plain http to a public one."""
        port = link.port or _PORTS.get(link.scheme, 0)
        resolve = functools.partial(self.resolve, link.host, port, type=socket.SOCK_STREAM)
        found = await run_in_daemon(resolve, "alarm-names")
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        if link.scheme == "http" and any(map(is_public, addresses)):
            raise Transient("The address is public, so it must be https.")
        return addresses
