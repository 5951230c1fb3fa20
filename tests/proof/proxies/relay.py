"""A network between a proxy and the gateway with a delay, which records who closes a connection."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from typing import Self

_PIECE = 65536


class Relay:
    """Forwards connections to a port.

    `closed` gets "proxy" or "gateway" for each connection, after the side that closed it first.
    """

    def __init__(self, target_port: int, delay_s: float = 0) -> None:
        self.target_port = target_port
        self.delay_s = delay_s
        self.opened = 0
        self.closed: queue.Queue[str] = queue.Queue()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        # Ends the thread's `accept`, which closing alone does not.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self.opened += 1
                threading.Thread(target=self._serve, args=[near], daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        with near:
            try:
                far = socket.create_connection(("127.0.0.1", self.target_port))
            except OSError:
                return
            with far:
                ends: queue.Queue[str] = queue.Queue()
                ways = [(near, far, "proxy"), (far, near, "gateway")]
                threads = [
                    threading.Thread(target=self._pass_on, args=[*way, ends], daemon=True)
                    for way in ways
                ]
                for thread in threads:
                    thread.start()
                self.closed.put(ends.get())
                for thread in threads:
                    thread.join()

    def _pass_on(self, source, target, name, ends) -> None:
        """Forward bytes in one direction, each after the delay, and then the end."""
        pieces: queue.Queue[tuple[float, bytes]] = queue.Queue()
        sending = threading.Thread(target=self._send, args=[pieces, target], daemon=True)
        sending.start()
        with contextlib.suppress(OSError):
            while piece := source.recv(_PIECE):
                pieces.put((time.monotonic() + self.delay_s, piece))
        ends.put(name)
        pieces.put((time.monotonic() + self.delay_s, b""))
        sending.join()

    def _send(self, pieces, target) -> None:
        with contextlib.suppress(OSError):
            while True:
                due, piece = pieces.get()
                time.sleep(max(0.0, due - time.monotonic()))
                if not piece:
                    target.shutdown(socket.SHUT_WR)
                    return
                target.sendall(piece)
