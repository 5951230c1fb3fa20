"""Serves JSON-RPC over HTTP/1.1: one thread a connection, open to web pages of any origin."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

# As in geth.
MAX_BODY: Final = 5 * 1024 * 1024  # bytes
_CORS: Final = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "POST, OPTIONS",
    "Access-Control-Allow-Headers": "*",
    "Access-Control-Allow-Private-Network": "true",
}


class RpcServer:
    """An HTTP server in its own thread, which calls `answer` from one thread a connection."""

    def __init__(self, answer: Callable[[bytes], bytes], *, host: str, port: int) -> None:
        self._http = _Server((host, port), _Handler)
        self._http.answer = answer
        self._thread = threading.Thread(
            target=self._http.serve_forever,
            # `stop` waits this long at most.
            kwargs={"poll_interval": 0.02},  # seconds
            name="play-chain",
            daemon=True,
        )

    @property
    def url(self) -> str:
        """The URL that takes POST requests."""
        host, port = self._http.server_address[:2]
        return f"http://{host!s}:{port}"

    def start(self) -> None:
        """Start to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Close the port and every connection."""
        if self._thread.is_alive():
            self._http.shutdown()
            self._thread.join()
        self._http.server_close()
        self._http.close_connections()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    answer: Callable[[bytes], bytes]

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        """Close kept-alive connections, whose threads would wait for another request."""
        with self._lock:
            waiting = list(self._open)
        for connection in waiting:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                # The client closed the connection first.
                continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing about clients that close their connection."""


class _Handler(BaseHTTPRequestHandler):
    # HTTP/1.1 keeps connections alive.
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    # Buffered, so that head and body leave in one packet.
    wbufsize = -1
    server: _Server

    def do_POST(self) -> None:
        """Answer JSON-RPC."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_BODY:
            self.close_connection = True
            self._send(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, b"")
            return
        body = self.rfile.read(int(length))
        self._send(HTTPStatus.OK, self.server.answer(body))

    def do_OPTIONS(self) -> None:
        """Answer a browser's question whether a page may POST here."""
        self._send(HTTPStatus.NO_CONTENT, b"")

    def do_GET(self) -> None:
        """Tell a person with a browser what this is."""
        self._send(HTTPStatus.OK, b'{"playChain":"POST JSON-RPC here"}')

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Print no line for a request."""

    def _send(self, status: HTTPStatus, body: bytes) -> None:
        self.send_response(status)
        for name, value in _CORS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        if status is not HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
