"""A gateway that the buyer does not know, over real HTTP, with answers that a test chooses."""

import base64
import hashlib
import json

import attrs
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.conftest import PNG, WALLET

SLUG = "picture"
TASK = "6f1c2f5e-9d0b-4c57-8f0e-3d1a5b7c9e21"
OFFER = {
    "scheme": "exact",
    "network": "eip155:8453",
    "asset": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
    "amount": "20000",
    "payTo": WALLET,
    "maxTimeoutSeconds": 300,
    "extra": {"name": "USD Coin", "version": "2"},
}


@attrs.define
class StrangeGateway:
    """Answers as a gateway does, unless a test chose other answers."""

    server: HTTPServer

    # Answers to the next paid requests, and to the next polls of the task.
    paid: list[Response] = attrs.field(factory=list)
    polls: list[Response] = attrs.field(factory=list)

    # Contents of every 402, additions to every task, and contents of the file.
    offer: dict = attrs.field(factory=OFFER.copy)
    task: dict = attrs.field(factory=dict)
    output: dict = attrs.field(factory=dict)
    content: bytes = PNG

    # Each payment and Idempotency-Key received.
    payments: list[tuple[str, str]] = attrs.field(factory=list)

    @property
    def url(self) -> str:
        return self.server.url_for("").rstrip("/")

    def open(self) -> None:
        self.server.expect_request(f"/api/x402/{SLUG}").respond_with_handler(self.sell)
        self.server.expect_request(f"/api/task/{TASK}").respond_with_handler(self.show)
        self.server.expect_request("/files/1").respond_with_handler(self.deliver)

    def sell(self, request: Request) -> Response:
        payment = request.headers.get("PAYMENT-SIGNATURE")
        if payment is None:
            return challenge(self.offer)
        self.payments.append((payment, request.headers["Idempotency-Key"]))
        if self.paid:
            return self.paid.pop(0)
        return answer(200, {"success": True, "taskId": TASK, "statusUrl": "/evil"})

    def show(self, _: Request) -> Response:
        if self.polls:
            return self.polls.pop(0)
        output = {
            "url": f"{self.url}/files/1",
            "mimeType": "image/png",
            "bytes": len(PNG),
            "sha256": hashlib.sha256(PNG).hexdigest(),
        }
        task = {
            "taskId": TASK,
            "status": "completed",
            "done": True,
            "slug": SLUG,
            "payment": {"state": "settled", "transaction": "0x" + "ab" * 32},
            "result": {"outputs": [output | self.output], "text": None},
        }
        return answer(200, task | self.task)

    def deliver(self, _: Request) -> Response:
        return Response(self.content, mimetype="image/png")


def challenge(offer: dict) -> Response:
    header = base64.b64encode(json.dumps({"x402Version": 2, "accepts": [offer]}).encode())
    refusal = answer(402, {"error": "Payment required"})
    refusal.headers["PAYMENT-REQUIRED"] = header.decode()
    return refusal


def answer(status: int, body: dict, **headers: str) -> Response:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(json.dumps(body), status, names, mimetype="application/json")
