"""How long and how much a client may take before it has an answer; the same for both servers."""

import asyncio
import math
from collections import Counter
from collections.abc import Callable

# A client that sends no complete head for so long, or nothing, or reads nothing, is cut off.
IDLE_S = 30
# A connection between two requests. It has to be longer than any proxy in front keeps it, so that
# the proxy closes it: a request on a connection that we close meanwhile is lost, and its client
# gets a 502. nginx keeps one for 60 s, cloudflared for 90 s, Caddy for 120 s. Google's load
# balancer keeps one for 600 s, which nobody can change.
KEEP_ALIVE_S = 620
# Of one connection; the answer to the last one says so.
MAX_REQUESTS = 10_000
# Of a request's line and headers together. A payment header of 32 KiB is 43,692 bytes in Base64.
MAX_HEAD_BYTES = 48 * 1024
# Each header costs microseconds to read, however short. Apache takes as many; browsers behind some
# proxies send thirty. Trailers have the same limit.
MAX_HEADERS = 100
# Each chunk of a body costs microseconds as well. Programs write chunks of kilobytes; so many of a
# body's may hold fewer bytes than this.
MAX_SHORT_CHUNKS = 1000
SHORT_CHUNK_BYTES = 64
# A client may still send this much after its answer. Closing at once would make the operating
# system drop the answer, too: a client that reads only after its last byte would see a reset.
MAX_UNREAD_BYTES = 32 * 1024 * 1024
# A transport that holds more tells the app to wait. What a connection holds below is not counted.
WRITE_BUFFER_BYTES = 16 * 1024
# Of a file, as it is read and sent. An answer of one piece waits whole.
PIECE_BYTES = 64 * 1024
# Connections that wait to be accepted.
BACKLOG = 2048
# At the end, once the app has drained, requests that are being answered have the first time. The
# second bounds an app that ends without having drained. Fly's `kill_timeout` is 120 s.
GRACE_S = 10
STOP_S = 115
# In all. Connections that wait at the same time hold a piece or two each, so these are some 500.
MOST_BYTES = 64 * 1024 * 1024
# An address's share. A proxy that is not named by GATEWAY_CLIENT_IP_HEADER is one address.
MOST_BYTES_PER_ADDRESS = MOST_BYTES // 4
# An ASGI extension of our servers': the `Outbox` of a request's connection.
OUTBOX = "gateway.outbox"


class LazyTimer:
    """Calls a function once `longest_s` have passed since the last start, unless it was stopped.

    `longest_s` gives seconds, and is asked at every look. The event loop has one timer at a time,
    which fires when the time can be over at the earliest.
    """

    def __init__(self, longest_s: Callable[[], float], expired: Callable[[], object]) -> None:
        self._longest_s = longest_s
        self._expired = expired
        self._loop = asyncio.get_running_loop()
        # By the loop's clock; infinite while the timer is stopped.
        self._since = math.inf
        self._look()

    def start(self) -> None:
        """Begin anew."""
        self._since = self._loop.time()

    def start_shorter(self) -> None:
        """Begin anew where `longest_s` is shorter than it was at the last look."""
        self.start()
        self._timer.cancel()
        self._look()

    def stop(self) -> None:
        """Let nothing happen until the next start."""
        self._since = math.inf

    def end(self) -> None:
        """Stop for good, and let go of the function and what it holds."""
        self._timer.cancel()
        del self._longest_s, self._expired

    def _look(self) -> None:
        longest_s = self._longest_s()
        left_s = min(self._since + longest_s - self._loop.time(), longest_s)
        if left_s > 0:
            self._timer = self._loop.call_later(left_s, self._look)
        else:
            self._expired()


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
