"""Buys one picture with `x402` 1.0.0 on httpx: the URL asks for x402 version 1."""

import asyncio
import json
import os

from eth_account import Account
from x402.clients.base import decode_x_payment_response
from x402.clients.httpx import x402HttpxClient

DONE = ("completed", "failed")


async def buy(shop: str, key: str) -> dict:
    account = Account.from_key(key)
    async with x402HttpxClient(account=account, base_url=shop, timeout=30) as http:
        url, body = "/api/x402/sandbox-image?x402Version=1", {"prompt": "a boat"}
        answer = await http.post(url, json=body)
        answer.raise_for_status()
        receipt = decode_x_payment_response(answer.headers["X-PAYMENT-RESPONSE"])
        where = f"{answer.json()['statusUrl']}?wait=20"
        while (task := (await http.get(where)).json())["status"] not in DONE:
            continue
    return {"status": task["status"], "transaction": receipt["transaction"]}


bought = asyncio.run(buy(os.environ["SHOP_URL"], os.environ["PRIVATE_KEY"]))
print(json.dumps(bought))  # noqa: T201 - who runs this reads it
