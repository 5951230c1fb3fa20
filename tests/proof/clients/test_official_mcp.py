"""The official Python client of MCP buys over a real socket."""

import httpx
import pytest

from tests.conftest import PNG, WALLET
from tests.plugins.gateway_mcp.app.official import MODES, buy_picture


@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_buys_by_a_tool(site, payer, chain, mode):
    shown = await buy_picture(site.url, mode, payer.account)
    async with httpx.AsyncClient() as client:
        assert (await client.get(str(shown.content[1].uri))).content == PNG
    assert chain.usdc_balance(WALLET) == 20_000
