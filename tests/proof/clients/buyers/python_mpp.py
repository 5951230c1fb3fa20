"""Buys one picture with `pympp` by the Machine Payments Protocol, method `evm`."""

import asyncio
import json
import os

from eth_account import Account
from mpp import Receipt
from mpp.client import Mpp
from mpp.methods.evm import BASE_USDC
from mpp.methods.evm import client as evm

DONE = ("completed", "failed")


async def buy(shop: str, key: str) -> dict:
    charge = evm.charge(currency=BASE_USDC, account=Account.from_key(key), max_amount="0.05")
    async with Mpp(methods=[charge], allowed_origins=[shop]) as mpp:
        url, body = f"{shop}/api/x402/sandbox-image", {"prompt": "a boat"}
        answer = await mpp.fetch(url, method="POST", json=body)
        answer.raise_for_status()
        receipt = Receipt.from_payment_receipt(answer.headers["Payment-Receipt"])
        where = f"{shop}{answer.json()['statusUrl']}?wait=20"
        while (task := (await mpp.fetch(where)).json())["status"] not in DONE:
            continue
    return {"status": task["status"], "transaction": receipt.reference}


bought = asyncio.run(buy(os.environ["SHOP_URL"], os.environ["PRIVATE_KEY"]))
print(json.dumps(bought))  # noqa: T201 - who runs this reads it
