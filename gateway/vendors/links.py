"""Where an address that somebody else wrote may lead: https, and nowhere inside."""

import asyncio
import socket
from typing import Any

from gateway.errors import Transient
from gateway.vendors.public_addresses import is_public


def check_link(link: Any, host: str) -> None:
    """Raise `Transient` where a parsed address is not plain https, or of another host."""
    if link.scheme != "https" or not link.host or link.userinfo:
        raise Transient("The link is not plain https.")
    if link.host != host:
        raise Transient("The link is redirected to another host.")


async def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host; raises `Transient` where any of them is not public."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if not addresses or not all(map(is_public, addresses)):
        raise Transient("The link leads to an address that is not public.")
    return addresses
