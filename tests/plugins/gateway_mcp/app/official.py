"""A purchase by MCP's official Python client and the official wallet of x402."""

import json

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from x402 import x402Client
from x402.mechanisms.evm import EthAccountSigner
from x402.mechanisms.evm.exact import register_exact_evm_client
from x402.schemas import parse_payment_required

# The client's modes, and the revision that each negotiates.
MODES = {"auto": "2026-07-28", "legacy": "2025-11-25"}


async def buy_picture(url: str, mode: str, account, server=None):
    """Buy a picture from a gateway; return the result of the paid call.

    `server` is an httpx2 transport, for tests without a real socket.
    """
    wallet = register_exact_evm_client(x402Client(), EthAccountSigner(account))
    async with httpx2.AsyncClient(transport=server, timeout=240) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            assert client.protocol_version == MODES[mode]
            listed = await client.list_tools()
            assert "picture" in {tool.name for tool in listed.tools}
            asked = await client.call_tool("picture", {"prompt": "a boat"})
            assert asked.is_error
            price = parse_payment_required(json.loads(asked.content[0].text))
            payment = await wallet.create_payment_payload(price)
            meta = {"x402/payment": payment.model_dump(by_alias=True, exclude_none=True)}
            bought = await client.call_tool("picture", {"prompt": "a boat"}, meta=meta)
            assert not bought.is_error
            task = {"taskId": bought.structured_content["taskId"], "wait": 30}
            shown = await client.call_tool("get_task", task)
    assert shown.structured_content["status"] == "completed"
    assert [block.type for block in shown.content] == ["text", "resource_link", "image"]
    return shown
