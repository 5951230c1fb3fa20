"""A proxy before PostgreSQL that counts round trips, COMMITs and notifications, and may delay.

Statements are no measure of round trips: a pipeline or a function sends several at once. The server
ends each round trip with ReadyForQuery. A client that sends "?" gets the counts.
"""

import argparse
import contextlib
import json
import socket
import threading
import time
from collections import Counter

_READY, _COMPLETE, _NOTIFICATION = ord("Z"), ord("C"), ord("A")
_COMMIT = b"COMMIT\0"
_HEAD = 5  # a type, and a length that includes itself
_CHUNK = 1 << 16


class Messages:
    """Counts the messages of a server in a stream of bytes."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Count the messages that end in `data`."""
        held = self._rest + data
        start = 0
        while len(held) >= start + _HEAD:
            end = start + 1 + int.from_bytes(held[start + 1 : start + _HEAD], "big")
            if len(held) < end:
                break
            self._count(held[start], held[start + _HEAD : end])
            start = end
        self._rest = held[start:]

    def _count(self, kind: int, body: bytes) -> None:
        self.counts["round_trips"] += kind == _READY
        self.counts["notifications"] += kind == _NOTIFICATION
        self.counts["commits"] += kind == _COMPLETE and body == _COMMIT


class Proxy:
    """Forwards connections to the server's socket; one thread per direction.

    An event loop's timers are too coarse for half a millisecond.
    """

    def __init__(self, server: str, delay_ms: float) -> None:
        self._server = server
        self._pause_s = delay_ms / 2000
        self._all: list[Messages] = []

    def serve(self, client: socket.socket) -> None:
        """Forward one connection until a side ends it, or answer with the counts."""
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with client:
            if client.recv(1, socket.MSG_PEEK) == b"?":
                client.recv(1)  # unread, it would reset the connection
                found = sum((one.counts for one in self._all), Counter())
                client.sendall(json.dumps(found).encode())
                return
            messages = Messages()
            self._all.append(messages)
            with socket.socket(socket.AF_UNIX) as server:
                server.connect(self._server)
                down = threading.Thread(target=self._pass_on, args=(server, client, messages))
                down.start()
                self._pass_on(client, server, None)
                down.join()

    def _pass_on(
        self, source: socket.socket, target: socket.socket, messages: Messages | None
    ) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK):
                if messages is not None:
                    messages.feed(data)
                if self._pause_s:
                    time.sleep(self._pause_s)
                target.sendall(data)
        for side in (source, target):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)


def read_counts(port: int) -> Counter[str]:
    """Return the counts of the proxy on a port so far."""
    with socket.create_connection(("127.0.0.1", port)) as asked:
        asked.sendall(b"?")
        return Counter(json.loads(b"".join(iter(lambda: asked.recv(_CHUNK), b""))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("server", help="the path of PostgreSQL's socket")
    parser.add_argument("--delay-ms", type=float, default=0.0, help="of each round trip")
    chosen = parser.parse_args()
    proxy = Proxy(chosen.server, chosen.delay_ms)
    with socket.create_server(("127.0.0.1", chosen.port), backlog=128) as listener:
        while True:
            client, _ = listener.accept()
            threading.Thread(target=proxy.serve, args=(client,), daemon=True).start()


if __name__ == "__main__":
    main()
