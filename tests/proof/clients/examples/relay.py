"""A relay between a buyer and a gateway that loses, delays and changes responses."""

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import attrs
import httpx

# The gateway handles the request, but the buyer gets no response.
LOST = "lost"
_PAYMENT_HEADERS = ("payment-signature", "x-payment")
# The relay writes these itself.
_OWN = ("host", "connection", "content-length", "transfer-encoding", "content-encoding", "date")


@attrs.define
class Relay:
    """Forwards requests to a gateway; `script` has the fate of each paid request, in order."""

    target: str
    url: str = ""
    # `LOST`, or a status and a body to return instead of the gateway's.
    script: list[str | tuple[int, str]] = attrs.field(factory=list)
    # The network in the manifest, if it should differ from the gateway's.
    network: str = ""
    # Whether polls of a task get an endpoint's 402.
    sells_polls: bool = False
    # Each request's path, key and whether it had a payment.
    requests: list[tuple[str, str | None, bool]] = attrs.field(factory=list)

    def answer(self, handler: BaseHTTPRequestHandler) -> tuple[int, list, bytes] | None:
        """Return the response; None to lose it."""
        data = handler.rfile.read(int(handler.headers.get("Content-Length", "0")))
        path, key = handler.path, handler.headers.get("Idempotency-Key")
        is_signed = any(handler.headers.get(name) for name in _PAYMENT_HEADERS)
        self.requests.append((path, key, is_signed))
        is_paid = is_signed or path == "/api/proxy-generate"
        fault = self.script.pop(0) if is_paid and self.script else None
        if isinstance(fault, tuple):
            return fault[0], [("Content-Type", "application/json")], fault[1].encode()
        if self.sells_polls and path.startswith("/api/task/"):
            path = "/api/x402/sandbox-image"
        answer = self._pass_on(handler, path, data)
        return None if fault == LOST else answer

    def _pass_on(self, handler, path: str, data: bytes) -> tuple[int, list, bytes]:
        sent = [each for each in handler.headers.items() if each[0].lower() not in _OWN]
        with httpx.Client(trust_env=False, timeout=120) as client:
            got = client.request(handler.command, self.target + path, content=data, headers=sent)
        body = got.content
        if self.network and path == "/.well-known/agent-manifest.json":
            body = body.replace(b'"network":"base"', b'"network":"%b"' % self.network.encode())
        kept = [each for each in got.headers.items() if each[0] not in _OWN]
        return got.status_code, kept, body


@contextlib.contextmanager
def open_relay(target: str) -> Iterator[Relay]:
    relay = Relay(target)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = relay.answer(self)
            if answer is None:
                self.close_connection = True
                return
            status, headers, body = answer
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        relay.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield relay
        server.shutdown()
        thread.join()
