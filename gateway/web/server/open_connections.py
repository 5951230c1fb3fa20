"""Open connections of this process, limited by its file descriptors and shared by address."""

import contextlib
import resource
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Any, Protocol

import attrs
import structlog

from gateway.web.front.current import client_address

# Kept for the database, files, vendors, the chain and sandboxed processes.
RESERVED_DESCRIPTORS = 200
# The soft limit is raised to this, or to the hard limit.
MAX_DESCRIPTORS = 65_536
# Connections that are searched for an idle one at a time, of all addresses together.
_SEARCHED = 512
# Between two log lines.
_LOG_EVERY = 1000
_log = structlog.get_logger()


def raise_descriptor_limit() -> None:
    """Raise this process's soft limit of open files: many systems start with 1,024 or 256."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        # Some systems allow less than they report.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_connections() -> int:
    """Return how many connections the limit of descriptors leaves room for."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MAX_DESCRIPTORS
    return max(soft - RESERVED_DESCRIPTORS, soft // 2)


class Connection(Protocol):
    """A connection, as its server sees it."""

    @property
    def is_idle(self) -> bool:
        """Whether no complete request awaits its answer."""

    def cut_off(self) -> None:
        """Abort the connection."""


@attrs.define(eq=False, repr=False)
class Connections:
    """Counts connections by address, and refuses some while descriptors are short.

    The address with the most connections gets no further one, and makes room for the others: an
    idle connection is closed, one of the oldest first. Every operation takes constant time.
    """

    most: Callable[[], int] = most_connections
    _addresses: dict[Connection, str] = attrs.field(factory=dict, init=False)
    # By address, the oldest connection first, but those that were found busy last. Both kinds are
    # an `OrderedDict`, whose first key is found at once even if many before it were removed.
    _held: dict[str, OrderedDict[Connection, None]] = attrs.field(factory=dict, init=False)
    # By number of connections: the addresses that have so many.
    _by_number: dict[int, OrderedDict[str, None]] = attrs.field(factory=dict, init=False)
    _highest: int = attrs.field(default=0, init=False)
    _refused: int = attrs.field(default=0, init=False)

    def admit(self, connection: Connection, transport: Any) -> None:
        """Count a new connection, or cut it off if there is no room for it."""
        address = _address_of(transport)
        if len(self._addresses) >= self.most() and not self._make_room(address):
            if self._refused % _LOG_EVERY == 0:
                _log.warning("connections.refused", open=len(self._addresses))
            self._refused += 1
            connection.cut_off()
            return
        self._addresses[connection] = address
        held = self._held.setdefault(address, OrderedDict())
        held[connection] = None
        self._renumber(address, len(held), change=1)

    def remove(self, connection: Connection) -> None:
        """Stop counting a connection, if it was admitted."""
        address = self._addresses.pop(connection, None)
        if address is None:
            return
        held = self._held[address]
        del held[connection]
        self._renumber(address, len(held), change=-1)
        if not held:
            del self._held[address]

    def _renumber(self, address: str, number: int, *, change: int) -> None:
        before = self._by_number.get(number - change, OrderedDict())
        before.pop(address, None)
        if number:
            self._by_number.setdefault(number, OrderedDict())[address] = None
        self._highest = max(self._highest, number)
        if not before:
            self._by_number.pop(number - change, None)
            # If the address alone had the most, it still has one less.
            if self._highest == number - change:
                self._highest = number

    def _make_room(self, address: str) -> bool:
        """Close an idle connection of the address with the most, for one that has fewer."""
        if len(self._held.get(address, ())) >= self._highest:
            return False
        idle = self._find_idle()
        if idle is None:
            return False
        self.remove(idle)
        idle.cut_off()
        return True

    def _find_idle(self) -> Connection | None:
        """Search some connections of the addresses with the most.

        The next search begins behind those that are busy, so they hide no idle one for long.
        """
        addresses, left = self._by_number.get(self._highest, OrderedDict()), _SEARCHED
        for address in list(islice(addresses, _SEARCHED)):
            held = self._held[address]
            for one in list(islice(held, left)):
                if one.is_idle:
                    return one
                held.move_to_end(one)
                left -= 1
            addresses.move_to_end(address)
            if not left:
                break
        return None


def _address_of(transport: Any) -> str:
    """Return the address for which a connection counts: IPv4, or the /64 of an IPv6 address."""
    peer = transport.get_extra_info("peername")
    return client_address(str(peer[0]), None) if isinstance(peer, tuple) and peer else "unknown"
