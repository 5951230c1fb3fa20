"""Posts one event to a buyer's address, which may not lead into the gateway's own network.

The name is resolved, all its addresses are checked, and the connection goes to exactly an address
that was checked. No redirect is followed, and of the answer only the status is read.
"""

import asyncio
import contextlib
import functools
import ipaddress
import socket
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from gateway.errors import Transient
from gateway.threads import run_in_daemon
from gateway.vendors.links import check_link, public_addresses
from gateway.vendors.transport import SendTrace, Transport, open_transport

_HTTPS_PORT = 443
_HTTP_PORT = 80
LookUp = Callable[..., Sequence[Any]]


class NotTaken(Exception):
    """The receiver could not be told; the text says why, without its address."""


def is_this_machine(host: str) -> bool:
    """Whether a host name or address of an address's host is this machine's own."""
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


@attrs.define(kw_only=True)
class Sender:
    """Sends events; `is_local` sends to this machine only, and by http as well."""

    is_local: bool = False
    # From the look-up of the name to the status.
    timeout_s: float = 5.0
    # None: the trusted certificates of the system.
    tls: ssl.SSLContext | None = attrs.field(default=None, repr=False)
    look_up: LookUp = socket.getaddrinfo
    _transport: Transport | None = attrs.field(default=None, init=False)
    _opening: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """Post a body and return the status of the answer; raises `NotTaken`."""
        transport = await self._open()
        try:
            link = transport.url(url)
            if not (self.is_local and link.scheme == "http"):
                check_link(link, link.host)
            return await self._post(transport, link, body, headers)
        except Transient as error:
            raise NotTaken(str(error)) from None
        except TimeoutError:
            raise NotTaken("No answer came in time.") from None
        except (transport.httpx.HTTPError, OSError, UnicodeError) as error:
            raise NotTaken(f"The request failed: {type(error).__name__}.") from None

    async def _post(
        self, transport: Transport, link: Any, body: bytes, headers: Mapping[str, str]
    ) -> int:
        options = transport.request_options("POST", headers, self.timeout_s) | {"content": body}
        deadline = asyncio.get_running_loop().time() + self.timeout_s
        # A thread cannot be stopped. Where a name's server does not answer, this attempt keeps its
        # place until the thread has ended, so there are never more threads than attempts.
        addresses = await self._find_addresses(link)
        async with (
            asyncio.timeout_at(deadline),
            transport.pinned(link, options, SendTrace(), addresses) as response,
        ):
            status: int = response.status_code
            return status

    async def _find_addresses(self, link: Any) -> list[str]:
        """Return the checked addresses of a link's host; raises `Transient` and `OSError`."""
        port = link.port or (_HTTP_PORT if link.scheme == "http" else _HTTPS_PORT)
        look_up = functools.partial(self.look_up, link.host, port, type=socket.SOCK_STREAM)
        found = await run_in_daemon(look_up, "webhook-names")
        return _own_addresses(found) if self.is_local else public_addresses(found)

    async def _open(self) -> Transport:
        """Return the transport, which the first event opens."""
        async with self._opening:
            if self._transport is None:
                self._transport = await open_transport(self.tls)
            return self._transport

    async def close(self) -> None:
        """Close all connections."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.close()


def _own_addresses(found: Iterable[Any]) -> list[str]:
    addresses = [str(entry[4][0]) for entry in found]
    if not all(map(is_this_machine, addresses)):
        raise Transient("The link leads to another machine.")
    return addresses
