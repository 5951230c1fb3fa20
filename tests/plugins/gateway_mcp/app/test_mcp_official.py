"""Purchases by the official Python client, in both modes."""

import httpx2
import pytest

from tests.conftest import PNG
from tests.plugins.gateway_mcp.app.official import MODES, buy_picture


@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_buys_a_picture(gateway, payer, mode):
    server = httpx2.ASGITransport(app=gateway.app)
    shown = await buy_picture("http://gateway.test", mode, payer.account, server)
    file = await gateway.client.get(str(shown.content[1].uri).removeprefix("http://gateway.test"))
    assert await file.get_data() == PNG
