"""Which addresses are out in the world: a link that somebody else wrote may lead to no other."""

import ipaddress

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")  # all that IANA has given out
_TUNNELS = (ipaddress.IPv6Network("2001::/32"), ipaddress.IPv6Network("2002::/16"))
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # how a network without IPv4 reaches it
_NOT_OURS = (
    ipaddress.IPv4Network("168.63.129.16/32"),  # Azure's inner service, on a public number
    ipaddress.IPv4Network("192.0.0.0/24"),  # protocols' own; Oracle's metadata is in there
    ipaddress.IPv4Network("192.88.99.0/24"),  # a tunnel's entrance
)


def is_public(text: str) -> bool:
    """Whether this is an address on the internet: not private, local, metadata or multicast."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return _is_public(address)


def _is_public(address: _Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        is_special = address.is_multicast or any(address in net for net in _NOT_OURS)
        return address.is_global and not is_special
    inner = address.ipv4_mapped
    if inner is None and address in _NAT64:
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if inner is not None:
        return _is_public(inner)
    is_tunnel = any(address in tunnel for tunnel in _TUNNELS)
    return address.is_global and address in _GLOBAL_UNICAST and not is_tunnel
