"""Buys one picture by a tool with `x402MCPSession`, which needs `mcp` before version 2."""

import asyncio
import json
import os

from eth_account import Account
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client
from x402 import x402Client
from x402.mcp import x402MCPSession
from x402.mechanisms.evm import EthAccountSigner
from x402.mechanisms.evm.exact import register_exact_evm_client


async def buy(shop: str, key: str) -> dict:
    wallet = register_exact_evm_client(x402Client(), EthAccountSigner(Account.from_key(key)))
    async with (
        streamablehttp_client(f"{shop}/mcp") as (reading, writing, _),
        ClientSession(reading, writing) as session,
    ):
        paying = x402MCPSession(session, wallet)
        await paying.initialize()
        bought = await paying.call_tool("sandbox_image", {"prompt": "a boat"})
        task = json.loads(bought.content[0].text)
        while not task["done"]:
            waits = {"taskId": task["taskId"], "wait": 30}
            task = (await session.call_tool("get_task", waits)).structuredContent
    return {"status": task["status"], "transaction": bought.payment_response.transaction}


bought = asyncio.run(buy(os.environ["SHOP_URL"], os.environ["PRIVATE_KEY"]))
print(json.dumps(bought))  # noqa: T201 - who runs this reads it
