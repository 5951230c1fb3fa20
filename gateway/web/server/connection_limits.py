"""Limits of connections in time and memory, for every server."""

import asyncio
import math
from collections import Counter
from collections.abc import Callable

# Time for a complete head, and for a client that neither sends nor reads.
IDLE_S = 30
# Idle time between two requests. It must exceed that of any proxy in front: if the gateway closes
# first, a request may be lost, and its client gets a 502. nginx keeps idle connections for 60 s,
# cloudflared for 90 s, Caddy for 120 s, and Google's load balancer for a fixed 600 s.
KEEP_ALIVE_S = 620
# Per connection; the last answer has `Connection: close`.
MAX_REQUESTS = 10_000
# Request line and headers together. A payment header of 32 KiB is 43,692 bytes in Base64.
MAX_HEAD_BYTES = 48 * 1024
# Also for trailers. Each header costs microseconds to parse. Apache has the same limit; browsers
# behind some proxies send thirty.
MAX_HEADERS = 100
# So does each chunk of a body. Programs send chunks of kilobytes, so the number of short ones is
# limited.
MAX_SHORT_CHUNKS = 1000
SHORT_CHUNK_BYTES = 64
# Accepted after the answer. Closing at once would make the kernel drop the answer: a client that
# reads only after sending everything would get a reset.
MAX_UNREAD_BYTES = 32 * 1024 * 1024
# Above this size the app waits, and the connection's bytes are counted.
WRITE_BUFFER_BYTES = 16 * 1024
# Piece size of files.
PIECE_BYTES = 64 * 1024
# A client that closed its half of the connection may still read its answer, or be gone altogether.
# If no answer begins in this time, the app learns of it.
HALF_CLOSED_S = 60
# Connections that the kernel queues.
BACKLOG = 2048
# Shutdown: time for requests in progress after the app has drained, and for an app that did not
# drain. Fly's `kill_timeout` is 120 s.
GRACE_S = 10
STOP_S = 115
# Unread bytes of all connections: some 500 of them, with a piece or two each.
MAX_BYTES = 64 * 1024 * 1024
# Per address. A proxy without GATEWAY_CLIENT_IP_HEADER counts as one address.
MAX_BYTES_PER_ADDRESS = MAX_BYTES // 4
# An ASGI extension of our servers: the `Outbox` of the connection.
OUTBOX = "gateway.outbox"


class LazyTimer:
    """A timeout that restarts with each request, at the cost of reading the clock.

    It calls `expired` when `longest_s()` seconds have passed since the last start, unless it was
    stopped. It uses one timer of the event loop, which fires at the earliest possible expiry and is
    then set again. A timer per request would cost a few percent of a plain answer, although nearly
    all are cancelled.
    """

    def __init__(self, longest_s: Callable[[], float], expired: Callable[[], object]) -> None:
        self._longest_s = longest_s
        self._expired = expired
        self._loop = asyncio.get_running_loop()
        # Loop time; infinite while the timer is stopped.
        self._since = math.inf
        self._check()

    def start(self) -> None:
        """Restart."""
        self._since = self._loop.time()

    def start_shorter(self) -> None:
        """Restart with a `longest_s` that may be shorter than before."""
        self.start()
        self._timer.cancel()
        self._check()

    def stop(self) -> None:
        """Pause until the next start."""
        self._since = math.inf

    def end(self) -> None:
        """Stop for good, and drop the references to the callbacks."""
        self._timer.cancel()
        del self._longest_s, self._expired

    def _check(self) -> None:
        longest_s = self._longest_s()
        left_s = min(self._since + longest_s - self._loop.time(), longest_s)
        if left_s > 0:
            self._timer = self._loop.call_later(left_s, self._check)
        else:
            self._expired()


class UnreadMemory:
    """Limits the bytes that wait for clients which do not read their answers.

    Above the limit the slowest connections are aborted: first those of an address above its share,
    then those of the address with the most bytes.
    """

    def __init__(self) -> None:
        self.taken_bytes = 0
        self._by_address: Counter[str] = Counter()
        # By address, the longest waiting connection first.
        self._waiting: dict[str, dict[Outbox, int]] = {}

    def add(self, outbox: "Outbox", address: str, size: int) -> None:
        """Count a connection that begins to wait, and abort others if necessary."""
        self._waiting.setdefault(address, {})[outbox] = size
        self._change(address, size)
        while self._by_address[address] > MAX_BYTES_PER_ADDRESS:
            self._cut_off_slowest(address)
        while self.taken_bytes > MAX_BYTES:
            self._cut_off_slowest(max(self._by_address, key=lambda one: self._by_address[one]))

    def remove(self, outbox: "Outbox", address: str) -> None:
        """Remove a connection whose client has read, or is gone."""
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
    """The unread bytes of one connection, as its server reports them."""

    def __init__(self, transport: asyncio.WriteTransport) -> None:
        self._transport: asyncio.WriteTransport | None = transport
        self._memory: UnreadMemory | None = None
        self._address = ""
        # The address that the waiting bytes count for; None while nothing waits.
        self._counted_for: str | None = None

    def belong_to(self, memory: UnreadMemory, address: str) -> None:
        """Count later waits for the address of the current request."""
        self._memory, self._address = memory, address

    def begin_wait(self) -> None:
        """Count the waiting bytes and the app's next piece."""
        if self._transport is None or self._memory is None or self._counted_for is not None:
            return
        self._counted_for = self._address
        size = self._transport.get_write_buffer_size() + PIECE_BYTES
        self._memory.add(self, self._address, size)

    def end_wait(self) -> None:
        """Stop counting."""
        if self._memory is not None and self._counted_for is not None:
            address, self._counted_for = self._counted_for, None
            self._memory.remove(self, address)

    def cut_off(self) -> None:
        """Abort the connection."""
        transport = self._transport
        self.end()
        if transport is not None:
            transport.abort()

    def end(self) -> None:
        """Release a closed connection."""
        self.end_wait()
        self._transport = None
