"""The official Python client buys, in both of its modes."""

import json

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from x402 import x402Client
from x402.mechanisms.evm import EthAccountSigner
from x402.mechanisms.evm.exact import register_exact_evm_client
from x402.schemas import parse_payment_required

from tests.conftest import PNG


@pytest.mark.parametrize(
    ("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")], ids=["auto", "legacy"]
)
async def test_the_official_client_buys_a_picture(gateway, payer, mode, version):
    wallet = register_exact_evm_client(x402Client(), EthAccountSigner(payer.account))
    server = httpx2.ASGITransport(app=gateway.app)
    async with httpx2.AsyncClient(transport=server, timeout=240) as http:
        transport = streamable_http_client("http://gateway.test/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            assert client.protocol_version == version
            listed = await client.list_tools()
            assert "picture" in {tool.name for tool in listed.tools}
            asked = await client.call_tool("picture", {"prompt": "a boat"})
            assert asked.is_error
            price = parse_payment_required(json.loads(asked.content[0].text))
            payment = await wallet.create_payment_payload(price)
            meta = {"x402/payment": payment.model_dump(by_alias=True, exclude_none=True)}
            bought = await client.call_tool("picture", {"prompt": "a boat"}, meta=meta)
            assert not bought.is_error
            assert bought.structured_content["status"] == "completed"
            assert [block.type for block in bought.content] == ["text", "resource_link", "image"]
            task = {"taskId": bought.structured_content["taskId"], "wait": 1}
            shown = await client.call_tool("get_task", task)
            assert shown.structured_content == bought.structured_content
    file = await gateway.client.get(str(bought.content[1].uri).removeprefix("http://gateway.test"))
    assert await file.get_data() == PNG
