"""Checks links before download: only https, and only to public addresses.

Links come from a vendor's response, so they must not reach the gateway's own network.
"""

import ipaddress
import socket
import threading
from collections.abc import Iterable
from functools import partial
from typing import Any

from gateway.concurrency.threads import run_in_daemon
from gateway.errors import Transient

# More than the number of concurrent downloads.
_MAX_LOOKUPS = 64
# IANA's global unicast range.
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_TUNNELS = (ipaddress.IPv6Network("2001::/32"), ipaddress.IPv6Network("2002::/16"))
# Networks without IPv4 reach IPv4 addresses under this prefix.
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_THIS_MACHINE = {
    "127.0.0.1": ["127.0.0.1"],
    "::1": ["::1"],
    "localhost": ["127.0.0.1", "::1"],
}
_SPECIAL_NETWORKS = (
    # Azure's internal service uses a public address.
    ipaddress.IPv4Network("168.63.129.16/32"),
    # Reserved for protocols; contains Oracle's metadata service.
    ipaddress.IPv4Network("192.0.0.0/24"),
    # A tunnel entry point (6to4).
    ipaddress.IPv4Network("192.88.99.0/24"),
)


def check_link(link: Any, host: str) -> None:
    """Raise `Transient` unless a parsed link is https, without credentials, and on this host."""
    if link.scheme != "https" or not link.host or link.userinfo:
        raise Transient("The link is not plain https.")
    if link.host != host:
        raise Transient("The link is redirected to another host.")


def loopback_addresses(link: Any) -> list[str] | None:
    """Return the addresses of an http or https link to this machine; None for any other link.

    Only its usual names count, not other names that DNS resolves to this machine.
    """
    if link.scheme not in ("http", "https") or link.userinfo:
        return None
    return _THIS_MACHINE.get(link.host)


class LinkResolver:
    """Resolves the host names of links, each in its own thread, up to a limit.

    The event loop has only a few threads for all name lookups. Slow name servers would fill them,
    and connections to the chain or to vendors could no longer be opened.
    """

    def __init__(self, most: int = _MAX_LOOKUPS) -> None:
        # A thread cannot be stopped, so it releases its slot itself.
        self._slots = threading.Semaphore(most)

    async def resolve(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host. Raises `Transient` if any of them is not public."""
        if not self._slots.acquire(blocking=False):
            raise Transient("Too many names are being looked up.")
        return public_addresses(
            await run_in_daemon(partial(self._resolve_blocking, host, port), "names-of-links")
        )

    def _resolve_blocking(self, host: str, port: int) -> list[Any]:
        try:
            return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        finally:
            self._slots.release()


def public_addresses(found: Iterable[Any]) -> list[str]:
    """Return the addresses in a result of `getaddrinfo`.

    Raises `Transient` if there are none, or if any is not public.
    """
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if not addresses or not all(map(is_public, addresses)):
        raise Transient("The link leads to an address that is not public.")
    return addresses


def is_public(text: str) -> bool:
    """Whether an address is on the internet: not private, local, metadata or multicast."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv4Address):
        is_special = address.is_multicast or any(address in net for net in _SPECIAL_NETWORKS)
        return address.is_global and not is_special
    inner = address.ipv4_mapped
    if inner is None and address in _NAT64:
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if inner is not None:
        return is_public(str(inner))
    is_tunnel = any(address in tunnel for tunnel in _TUNNELS)
    return address.is_global and address in _GLOBAL_UNICAST and not is_tunnel
