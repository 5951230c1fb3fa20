"""Serves JSON-RPC over HTTP/1.1 with one thread per connection and CORS for any origin."""

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
    """An HTTP server in its own thread. It calls `answer` from each connection's thread."""

    def __init__(self, answer: Callable[[bytes], bytes], *, host: str, port: int) -> None:
        self._http = _Server((host, port), _Handler)
        self._http.answer = answer
        self._thread = threading.Thread(
            target=self._http.serve_forever,
            # The longest time that `stop` waits.
            kwargs={"poll_interval": 0.02},  # seconds
            name="play-chain",
            daemon=True,
        )

    @property
    def url(self) -> str:
        """The URL for POST requests."""
        host, port = self._http.server_address[:2]
        return f"http://{host!s}:{port}"

    def start(self) -> None:
        """Start serving."""
        self._thread.start()

    def stop(self) -> None:
        """Close the port and all connections."""
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
        """Ignore clients that close their connection."""


class _Handler(BaseHTTPRequestHandler):
    # For keep-alive.
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    # Buffered, so that head and body are sent in one packet.
    wbufsize = -1
    server: _Server

    def do_POST(self) -> None:
        """Handle JSON-RPC."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_BODY:
            self.close_connection = True
            self._send(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, b"")
            return
        body = self.rfile.read(int(length))
        self._send(HTTPStatus.OK, self.server.answer(body))

    def do_OPTIONS(self) -> None:
        """Handle a CORS preflight request."""
        self._send(HTTPStatus.NO_CONTENT, b"")

    def do_GET(self) -> None:
        """Explain the port to a person with a browser."""
        self._send(HTTPStatus.OK, b'{"playChain":"POST JSON-RPC here"}')

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log no requests."""

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
