"""Limits the bytes that wait for clients which do not read their answers.

What the operating system does not take waits in the connection's transport. Where it becomes too
much, the slowest connections are cut off: first those of an address that takes more than its share,
then those of the address that takes most.
"""

import asyncio
from collections import Counter

from gateway.web.server.connection_limits import PIECE_BYTES

# In all. Connections that wait at the same time hold a piece or two each, so these are some 500.
MOST_BYTES = 64 * 1024 * 1024
# An address's share. A proxy that is not named by GATEWAY_CLIENT_IP_HEADER is one address.
MOST_BYTES_PER_ADDRESS = MOST_BYTES // 4
# An ASGI extension of our servers': the `Outbox` of a request's connection.
OUTBOX = "gateway.outbox"


class UnreadMemory:
    """Counts the bytes that wait for all clients now."""

    def __init__(self) -> None:
        self.taken_bytes = 0
        self._by_address: Counter[str] = Counter()
        # By address, the connection that has waited longest first.
        self._waiting: dict[str, dict[Outbox, int]] = {}

    def add(self, outbox: "Outbox", address: str, size: int) -> None:
        """Count a connection that waits from now on, and cut off others for it."""
        self._waiting.setdefault(address, {})[outbox] = size
        self._change(address, size)
        while self._by_address[address] > MOST_BYTES_PER_ADDRESS:
            self._cut_off_slowest(address)
        while self.taken_bytes > MOST_BYTES:
            self._cut_off_slowest(max(self._by_address, key=lambda one: self._by_address[one]))

    def remove(self, outbox: "Outbox", address: str) -> None:
        """Count a connection no more: its client has read, or is gone."""
        waiting = self._waiting[address]
        self._change(address, -waiting.pop(outbox))
        if not waiting:
            del self._waiting[address], self._by_address[address]

    def _cut_off_slowest(self, address: str) -> None:
        next(iter(self._waiting[address])).cut_off()

    def _change(self, address: str, more: int) -> None:
        self.taken_bytes += more
        self._by_address[address] += more


class Outbox:
    """What waits in one connection; its server reports when it begins to wait, and ends."""

    def __init__(self, transport: asyncio.WriteTransport) -> None:
        self._transport: asyncio.WriteTransport | None = transport
        self._memory: UnreadMemory | None = None
        self._address = ""
        # The address that the waiting bytes are counted for; None while nothing waits.
        self._counted_for: str | None = None

    def belong_to(self, memory: UnreadMemory, address: str) -> None:
        """Count what waits from now on for the address of the present request."""
        self._memory, self._address = memory, address

    def begin_wait(self) -> None:
        """Count what waits, with the next piece that the app may hold meanwhile."""
        if self._transport is None or self._memory is None or self._counted_for is not None:
            return
        self._counted_for = self._address
        size = self._transport.get_write_buffer_size() + PIECE_BYTES
        self._memory.add(self, self._address, size)

    def end_wait(self) -> None:
        """Count nothing more."""
        if self._memory is not None and self._counted_for is not None:
            address, self._counted_for = self._counted_for, None
            self._memory.remove(self, address)

    def cut_off(self) -> None:
        """Close the connection and drop what waits."""
        transport = self._transport
        self.end()
        if transport is not None:
            transport.abort()

    def end(self) -> None:
        """Forget the connection, which is closed."""
        self.end_wait()
        self._transport = None
