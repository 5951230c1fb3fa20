"""Buys one picture with `x402` 2.x on httpx."""

import asyncio
import json
import os

from eth_account import Account
from x402 import x402Client
from x402.http.clients.httpx import x402HttpxClient
from x402.http.utils import decode_payment_response_header
from x402.mechanisms.evm import EthAccountSigner
from x402.mechanisms.evm.exact import register_exact_evm_client

DONE = ("completed", "failed")


async def buy(shop: str, key: str) -> dict:
    client = register_exact_evm_client(x402Client(), EthAccountSigner(Account.from_key(key)))
    async with x402HttpxClient(client, timeout=30) as http:
        answer = await http.post(f"{shop}/api/x402/sandbox-image", json={"prompt": "a boat"})
        answer.raise_for_status()
        receipt = decode_payment_response_header(answer.headers["PAYMENT-RESPONSE"])
        where = f"{shop}{answer.json()['statusUrl']}?wait=20"
        while (task := (await http.get(where)).json())["status"] not in DONE:
            continue
    return {"status": task["status"], "transaction": receipt.transaction}


bought = asyncio.run(buy(os.environ["SHOP_URL"], os.environ["PRIVATE_KEY"]))
print(json.dumps(bought))  # noqa: T201 - who runs this reads it
