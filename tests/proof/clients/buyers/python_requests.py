"""Buys one picture with `x402` 2.x on requests."""

import json
import os

from eth_account import Account
from x402 import x402ClientSync
from x402.http.clients.requests import x402_requests
from x402.http.utils import decode_payment_response_header
from x402.mechanisms.evm import EthAccountSigner
from x402.mechanisms.evm.exact import register_exact_evm_client

DONE = ("completed", "failed")


def buy(shop: str, key: str) -> dict:
    client = register_exact_evm_client(x402ClientSync(), EthAccountSigner(Account.from_key(key)))
    with x402_requests(client) as http:
        url, body = f"{shop}/api/x402/sandbox-image", {"prompt": "a boat"}
        answer = http.post(url, json=body, timeout=30)
        answer.raise_for_status()
        receipt = decode_payment_response_header(answer.headers["PAYMENT-RESPONSE"])
        where = f"{shop}{answer.json()['statusUrl']}?wait=20"
        while (task := http.get(where, timeout=30).json())["status"] not in DONE:
            continue
    return {"status": task["status"], "transaction": receipt.transaction}


bought = buy(os.environ["SHOP_URL"], os.environ["PRIVATE_KEY"])
print(json.dumps(bought))  # noqa: T201 - who runs this reads it
