"""Buys one picture with `x402` 1.0.0 on requests: the URL asks for x402 version 1."""

import json
import os

from eth_account import Account
from x402.clients.base import decode_x_payment_response
from x402.clients.requests import x402_requests

DONE = ("completed", "failed")


def buy(shop: str, key: str) -> dict:
    with x402_requests(Account.from_key(key)) as http:
        url, body = f"{shop}/api/x402/sandbox-image?x402Version=1", {"prompt": "a boat"}
        answer = http.post(url, json=body, timeout=30)
        answer.raise_for_status()
        receipt = decode_x_payment_response(answer.headers["X-PAYMENT-RESPONSE"])
        where = f"{shop}{answer.json()['statusUrl']}?wait=20"
        while (task := http.get(where, timeout=30).json())["status"] not in DONE:
            continue
    return {"status": task["status"], "transaction": receipt["transaction"]}


bought = buy(os.environ["SHOP_URL"], os.environ["PRIVATE_KEY"])
print(json.dumps(bought))  # noqa: T201 - who runs this reads it
