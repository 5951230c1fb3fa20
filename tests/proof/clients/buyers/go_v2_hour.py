"""Buys one picture as the official Go client did before 2026-08-31: signed for an hour.

Go is not needed: the payload has the fields, order and times of `createEIP3009Payload` in
go/mechanisms/evm/exact/client/scheme.go @0bd61fd, and is sent like that of its HTTP client.
"""

import base64
import json
import os
import secrets
import time

import requests
from eth_account import Account

DONE = ("completed", "failed")
HOUR_S = 3600
TRANSFER = {
    "TransferWithAuthorization": [
        {"name": "from", "type": "address"},
        {"name": "to", "type": "address"},
        {"name": "value", "type": "uint256"},
        {"name": "validAfter", "type": "uint256"},
        {"name": "validBefore", "type": "uint256"},
        {"name": "nonce", "type": "bytes32"},
    ]
}


def sign(offer: dict, key: str) -> dict:
    """Return the payload of one offer, with the key order of Go's maps."""
    payer, now = Account.from_key(key), int(time.time())
    authorization = {
        "from": payer.address,
        "nonce": "0x" + secrets.token_hex(32),
        "to": offer["payTo"],
        "validAfter": str(now - 30),
        "validBefore": str(now + HOUR_S),
        "value": offer["amount"],
    }
    numbers = {name: int(authorization[name]) for name in ("validAfter", "validBefore", "value")}
    domain = {
        "name": offer["extra"]["name"],
        "version": offer["extra"]["version"],
        "chainId": int(offer["network"].removeprefix("eip155:")),
        "verifyingContract": offer["asset"],
    }
    signed = Account.sign_typed_data(payer.key, domain, TRANSFER, authorization | numbers)
    return {"authorization": authorization, "signature": "0x" + bytes(signed.signature).hex()}


def buy(shop: str, key: str) -> dict:
    url, body = f"{shop}/api/x402/sandbox-image", {"prompt": "a boat"}
    asked = requests.post(url, json=body, timeout=30)
    challenge = json.loads(base64.b64decode(asked.headers["PAYMENT-REQUIRED"]))
    offer = challenge["accepts"][0]
    payment = {
        "x402Version": 2,
        "payload": sign(offer, key),
        "accepted": offer,
        "resource": challenge["resource"],
        "extensions": challenge["extensions"],
    }
    header = base64.b64encode(json.dumps(payment, separators=(",", ":")).encode()).decode()
    answer = requests.post(url, json=body, headers={"PAYMENT-SIGNATURE": header}, timeout=30)
    answer.raise_for_status()
    receipt = json.loads(base64.b64decode(answer.headers["PAYMENT-RESPONSE"]))
    where = f"{shop}{answer.json()['statusUrl']}?wait=20"
    while (task := requests.get(where, timeout=30).json())["status"] not in DONE:
        continue
    return {"status": task["status"], "transaction": receipt["transaction"]}


bought = buy(os.environ["SHOP_URL"], os.environ["PRIVATE_KEY"])
print(json.dumps(bought))  # noqa: T201 - who runs this reads it
