"""JSON that one decoder refuses and another one reads, as vendors send it."""

import pytest

from gateway import CallReverted
from gateway.chain.endpoints import Endpoint
from gateway.chain.transport import KeepAliveProvider
from tests.gateway.vendors.test_outbound import read_request, scripted


@pytest.mark.parametrize("status", ["200 OK", "400 Bad Request"])
async def test_half_a_surrogate_in_a_reverts_message_is_no_broken_answer(status):
    body = rb'{"id": 0, "error": {"code": 3, "message": "execution reverted: \ud800"}}'

    async def behave(reader, writer):
        await read_request(reader)
        writer.write(
            b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status.encode(), len(body), body)
        )
        await writer.drain()

    async with scripted(behave) as url:
        endpoint = Endpoint(place=1, provider=KeepAliveProvider(url), timeout_s=5.0)
        with pytest.raises(CallReverted):
            await endpoint.request("eth_call", {}, "latest")
        await endpoint.provider.disconnect()
