"""Receive a gateway's webhooks instead of polling: pip install standardwebhooks.

Buy with "callbackUrl": "https://your.example.com/hook" in the body. The response to the purchase
has "callbackSecret": add it to secrets.json, as {"the taskId": "whsec_..."}. Run this server behind
that URL; it prints each event of a task once.
"""

import argparse
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from standardwebhooks import Webhook, WebhookVerificationError

argparse.ArgumentParser(description=__doc__).parse_args()
SECRETS = Path(os.environ.get("SECRETS", "secrets.json"))
PORT = int(os.environ.get("PORT", "8403"))
MAX_BYTES = 32_000_000
seen = set()


def read_event(body, headers):
    """Return the event in a request; raises an error if its signature is wrong."""
    # Each task has its own secret, and webhook-id ends in the task's id.
    task_id = headers["webhook-id"].rpartition("_")[2]
    return Webhook(json.loads(SECRETS.read_text())[task_id]).verify(body, headers)


class Receiver(BaseHTTPRequestHandler):
    timeout = 10  # seconds

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_BYTES:
            self.answer(413)
            return
        body = self.rfile.read(int(length))
        try:
            event = read_event(body, {name.lower(): value for name, value in self.headers.items()})
        except (WebhookVerificationError, ValueError, LookupError):
            self.answer(401)
            return
        # The gateway repeats an event until it gets a 2xx; the id stays the same.
        if self.headers["webhook-id"] not in seen:
            seen.add(self.headers["webhook-id"])
            task = event["data"]
            print(event["type"], task["taskId"], task["status"], flush=True)
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", PORT), Receiver)
print(f"Listening on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
