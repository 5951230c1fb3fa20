"""The gateway and the client of the current request."""

import functools
import ipaddress
import re
import socket
from collections.abc import Mapping
from typing import Any, cast

import structlog
from quart import current_app, request

from gateway.running.gateway import Gateway

# Keys of `app.extensions`: the `Gateway`, and the error that stopped startup.
EXTENSION = "gateway"
FAILURE = "gateway-failure"
# No address is longer, but a client may put anything into the header.
_MAX_ADDRESS_CHARS = 64
# "203.0.113.7:5001" and "[2001:db8::1]:5001", in the format of some proxies.
_WITH_PORT = re.compile(r"\[([^\]]*)\]:\d+|([^:]*):\d+")
_log = structlog.get_logger()


def current_gateway() -> Gateway:
    """Return the gateway of the app that handles the current request."""
    return cast(Gateway, current_app.extensions[EXTENSION])


def address() -> str:
    """Return the current client's address for rate limits."""
    return address_of(request.scope, current_gateway().settings.client_ip_header)


def address_of(scope: Mapping[str, Any], header: str) -> str:
    """Return the client's address for rate limits from an ASGI scope.

    `header` is the header that the trusted proxy sets; it is empty without a proxy.
    """
    name = header.lower().encode()
    values = [value.decode("latin1") for key, value in scope["headers"] if key.lower() == name]
    return client_address(peer_of(scope), ",".join(values) if header else None)


def peer_of(scope: Mapping[str, Any]) -> str:
    """Return the peer address of an ASGI scope."""
    client: tuple[str, int] = scope.get("client") or ("unknown", 0)
    return client[0]


def client_address(peer: str, forwarded: str | None) -> str:
    """Return the client's address for rate limits: IPv4, or the /64 of an IPv6 address.

    `forwarded` is the value of the trusted header, or None if none is trusted. The last entry of a
    list counts: the trusted proxy appended it, and a client can forge the others.
    """
    last = (forwarded or "").rpartition(",")[2].strip()
    if forwarded is not None and not last:
        _warn_once("the header is missing")
    return _parse_address(last[:_MAX_ADDRESS_CHARS] or peer, peer)


@functools.cache
def _warn_once(reason: str) -> None:
    """Warn that clients may share their limits, because the proxy sends no address."""
    _log.warning("proxy.no_address", reason=reason)


def _parse_address(text: str, peer: str) -> str:
    try:
        # Nearly all are IPv4, and `ipaddress` costs more than counting the request.
        return socket.inet_ntoa(socket.inet_pton(socket.AF_INET, text))
    except (OSError, ValueError):
        return _parse_other_address(text, peer)


@functools.lru_cache(maxsize=4096)
def _parse_other_address(text: str, peer: str) -> str:
    with_port = _WITH_PORT.fullmatch(text)
    host = (with_port[1] or with_port[2]) if with_port else text
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        if text == peer:
            return peer
        _warn_once("the header holds no address")
        return _parse_address(peer, peer)
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address.packed, 64), strict=False))
    return str(address)
