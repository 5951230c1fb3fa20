"""Buys one picture by a tool with `mcp` 1.8, whose revision 2025-03-26 has no links."""

import asyncio
import json
import os

from eth_account import Account
from mcp import ClientSession, types
from mcp.client.streamable_http import streamablehttp_client
from x402 import x402Client
from x402.mechanisms.evm import EthAccountSigner
from x402.mechanisms.evm.exact import register_exact_evm_client
from x402.schemas import parse_payment_required


async def call(session: ClientSession, name: str, arguments: dict, meta: dict | None = None):
    """Call a tool with `_meta`, which the session's own method does not accept."""
    params = {"name": name, "arguments": arguments} | ({"_meta": meta} if meta else {})
    request = types.CallToolRequest(
        method="tools/call", params=types.CallToolRequestParams(**params)
    )
    return await session.send_request(types.ClientRequest(request), types.CallToolResult)


async def buy(shop: str, key: str) -> dict:
    wallet = register_exact_evm_client(x402Client(), EthAccountSigner(Account.from_key(key)))
    async with (
        streamablehttp_client(f"{shop}/mcp/") as (reading, writing, _),
        ClientSession(reading, writing) as session,
    ):
        await session.initialize()
        await session.list_tools()
        tool, arguments = "sandbox_image", {"prompt": "a boat"}
        asked = await call(session, tool, arguments)
        terms = parse_payment_required(json.loads(asked.content[0].text))
        payment = (await wallet.create_payment_payload(terms)).model_dump(
            by_alias=True, exclude_none=True
        )
        bought = await call(session, tool, arguments, {"x402/payment": payment})
        task = json.loads(bought.content[0].text)
        while not task["done"]:
            shown = await call(session, "get_task", {"taskId": task["taskId"], "wait": 30})
            task = json.loads(shown.content[0].text)
    receipt = bought.meta["x402/payment-response"]
    return {"status": task["status"], "transaction": receipt["transaction"]}


bought = asyncio.run(buy(os.environ["SHOP_URL"], os.environ["PRIVATE_KEY"]))
print(json.dumps(bought))  # noqa: T201 - who runs this reads it
