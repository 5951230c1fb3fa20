"""A stub of Base's JSON-RPC: every hash is a mined transfer of 0.02 USDC to the wallet.

`python stub_chain.py PORT [LATENCY_MS]`. Each answer leaves so many milliseconds after its request.
"""

import asyncio
import json
import sys
import time
from typing import Any

import uvloop
from place import WALLET

from gateway.domain.eip3009 import BASE, TRANSFER_TOPIC, topic

_HEAD_LINES = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_HEAD = 1_000_000
_BLOCK_S = 2
_BLOCK_HASH = "0x" + "b" * 64
_PAYER = "0x" + "2" * 40


def _block(number: int) -> dict[str, Any]:
    return {
        "number": hex(number),
        "hash": _BLOCK_HASH,
        "timestamp": hex(int(time.time()) - _BLOCK_S * (_HEAD - number)),
        "baseFeePerGas": "0x5f5e100",
    }


def _receipt(tx_hash: str) -> dict[str, Any]:
    """Return a receipt as real ones are: with the fields nobody needs."""
    log = {
        "address": BASE.token,
        "topics": [TRANSFER_TOPIC, topic(_PAYER), topic(WALLET)],
        "data": "0x" + (20_000).to_bytes(32, "big").hex(),
        "blockHash": _BLOCK_HASH,
        "blockNumber": hex(_HEAD + 1),
        "transactionHash": tx_hash,
        "transactionIndex": "0x1",
        "logIndex": "0x7",
        "removed": False,
    }
    return {
        "transactionHash": tx_hash,
        "transactionIndex": "0x1",
        "blockHash": _BLOCK_HASH,
        "blockNumber": hex(_HEAD + 1),
        "from": _PAYER,
        "to": BASE.token,
        "cumulativeGasUsed": "0x1a2b3c",
        "gasUsed": "0xb1c2",
        "effectiveGasPrice": "0x5f5e100",
        "contractAddress": None,
        "logs": [log],
        "logsBloom": "0x" + "0" * 512,
        "status": "0x1",
        "type": "0x2",
    }


_ANSWERS = {
    "eth_chainId": lambda _: hex(BASE.chain_id),
    "eth_call": lambda _: "0x" + BASE.domain_separator.hex(),
    "eth_getCode": lambda _: "0x",
    "eth_blockNumber": lambda _: hex(_HEAD),
    "eth_getBlockByNumber": lambda _: _block(_HEAD),
    "eth_getBlockByHash": lambda _: _block(_HEAD + 1),
    "eth_getTransactionByHash": lambda params: {"hash": params[0], "blockHash": _BLOCK_HASH},
    "eth_getTransactionReceipt": lambda params: _receipt(params[0]),
    "eth_getTransactionCount": lambda _: "0x0",
    "eth_getBalance": lambda _: hex(10**18),
    "eth_maxPriorityFeePerGas": lambda _: "0xf4240",
}


class StubProtocol(asyncio.Protocol):
    """As little HTTP as a JSON-RPC client needs: keep-alive and Content-Length."""

    def __init__(self, latency_s: float = 0.0) -> None:
        self._buffer = b""
        self._latency_s = latency_s

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection to answer on."""
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        """Answer every request that is complete."""
        self._buffer += data
        while (request := self._next_request()) is not None:
            call = json.loads(request)
            result = _ANSWERS[call["method"]](call.get("params"))
            body = json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": result}).encode()
            head = (
                f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
            )
            self._send(head.encode() + b"\r\n\r\n" + body)

    def _send(self, answer: bytes) -> None:
        if self._latency_s:
            loop = asyncio.get_running_loop()
            loop.call_later(self._latency_s, self._transport.write, answer)
        else:
            self._transport.write(answer)

    def _next_request(self) -> bytes | None:
        """Return the next complete body that was received, or None."""
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return None
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(rest) < length:
            return None
        self._buffer = rest[length:]
        return rest[:length]


async def _serve(port: int, latency_s: float) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: StubProtocol(latency_s), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1]), float((sys.argv[2:] or ["0"])[0]) / 1000))
