"""A facilitator that only serves `/supported`, which the peers read before their first 402."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_SUPPORTED = {
    "kinds": [{"x402Version": 2, "scheme": "exact", "network": "eip155:8453"}],
    "extensions": [],
    "signers": {},
}


class Facilitator(BaseHTTPRequestHandler):
    """Serves the supported kinds for every GET."""

    def do_GET(self) -> None:
        """Return the supported kinds."""
        body = json.dumps(_SUPPORTED).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Facilitator).serve_forever()
