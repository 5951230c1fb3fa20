"""A stub of Base's JSON-RPC that responds after a chosen latency and counts its calls.

It behaves like a chain as far as the gateway can see: nonces of senders and authorizations are used
once, a nonce gap holds transactions back, spent authorizations revert (`stub_ledger.py`).
"""

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import uvloop
from stub_ledger import BLOCK_MS, Ledger, Refused, number_of, read_call

from gateway.domain.eip3009 import (
    AUTHORIZATION_STATE,
    BALANCE_OF,
    BASE,
    DOMAIN_SEPARATOR,
    IS_BLACKLISTED,
    PAUSED,
    word,
)

_SAFE_S = 20  # from the safe block to the newest
_REVERTED = 3
_RICH_UNITS = 10**15
_SPENT = "execution reverted: FiatTokenV2: authorization is used or canceled"
_NO, _YES = word(0), word(1)
# Of a shared simulation, as in `gateway/chain/shared_simulations.py`.
_TRANSFER, _LENGTH = bytes.fromhex("e3ee160e"), 292
_SUCCEEDS, _PLAIN = 1, 2


class StubChain:
    """The JSON-RPC methods. Those that begin with `bench_` belong to the measurement."""

    def __init__(self, *, latency_ms: float, block_ms: int) -> None:
        self.latency_s = latency_ms / 1000
        self._ledger = Ledger(block_ms=block_ms)
        self._calls: Counter[str] = Counter()
        self._methods: dict[str, Callable[[list[Any]], Any]] = {
            "eth_chainId": lambda _: hex(BASE.chain_id),
            "eth_blockNumber": lambda _: hex(self._ledger.head()),
            "eth_getBlockByNumber": lambda params: self._ledger.block(self._number(params[0])),
            "eth_getBlockByHash": lambda params: self._ledger.block(number_of(params[0])),
            "eth_getTransactionReceipt": lambda params: self._ledger.receipt(params[0]),
            "eth_getTransactionByHash": self._transaction,
            "eth_getTransactionCount": lambda params: hex(self._ledger.count(*params)),
            "eth_sendRawTransaction": lambda params: self._ledger.send(
                bytes.fromhex(params[0][2:])
            ),
            "eth_getBalance": lambda _: hex(10**18),
            "eth_maxPriorityFeePerGas": lambda _: "0xf4240",
            "eth_getCode": lambda _: "0x",
            "eth_getLogs": self._logs,
            "eth_call": lambda params: "0x" + self._call(*params).hex(),
            "bench_latency": self._set_latency,
            "bench_counts": lambda _: {**self._calls, "settled": self._ledger.settled},
        }

    def answer(self, call: dict[str, Any]) -> dict[str, Any]:
        """Return the response to one call."""
        method, params = call["method"], call.get("params") or []
        if not method.startswith("bench_"):
            self._calls[method] += 1
        envelope = {"jsonrpc": "2.0", "id": call["id"]}
        if method not in self._methods:
            return envelope | {"error": {"code": -32601, "message": f"{method}: no such method"}}
        try:
            return envelope | {"result": self._methods[method](params)}
        except Refused as error:
            return envelope | {"error": {"code": error.code, "message": str(error)}}

    def _set_latency(self, params: list[Any]) -> bool:
        self.latency_s = params[0] / 1000
        return True

    def _transaction(self, params: list[Any]) -> dict[str, Any] | None:
        return {"hash": params[0]} if self._ledger.knows(params[0]) else None

    def _logs(self, params: list[Any]) -> list[dict[str, Any]]:
        wanted = params[0]
        first, last = self._number(wanted["fromBlock"]), self._number(wanted["toBlock"])
        return self._ledger.logs(first, last, wanted["topics"])

    def _call(self, call: dict[str, Any], which: Any = "latest", *_: Any) -> bytes:
        """Return the token's result; every account is rich, none is blacklisted."""
        data = bytes.fromhex(call["data"][2:])
        if "to" not in call:
            return self._share(data)
        function = data[:4]
        fixed = {
            DOMAIN_SEPARATOR: BASE.domain_separator,
            BALANCE_OF: word(_RICH_UNITS),
            PAUSED: _NO,
            IS_BLACKLISTED: _NO,
        }
        if function in fixed:
            return fixed[function]
        if function == AUTHORIZATION_STATE:
            sender, nonce = "0x" + data[16:36].hex(), "0x" + data[36:68].hex()
            return _YES if self._ledger.is_used(sender, nonce, self._number(which)) else _NO
        signed = read_call(data)
        if self._ledger.is_used(signed.sender, signed.nonce):
            raise Refused(_SPENT, _REVERTED)
        return b""

    def _share(self, data: bytes) -> bytes:
        """Return the flags of transfers that share a simulation; all accounts are plain."""
        calls = data[data.index(_TRANSFER) :]
        signed = [read_call(calls[at : at + _LENGTH]) for at in range(0, len(calls), _LENGTH)]
        used = [self._ledger.is_used(one.sender, one.nonce) for one in signed]
        return bytes(_PLAIN if is_used else _PLAIN | _SUCCEEDS for is_used in used)

    def _number(self, which: Any) -> int:
        """Return the number of a block given by tag, number or hash."""
        if isinstance(which, dict):
            return number_of(which["blockHash"])
        ages_s = {"latest": 0, "pending": 0, "safe": _SAFE_S}
        return self._ledger.head(ages_s[which]) if which in ages_s else int(which, 16)


class StubProtocol(asyncio.Protocol):
    """The minimum of HTTP for a JSON-RPC client: keep-alive, Content-Length, batches."""

    def __init__(self, chain: StubChain) -> None:
        self._chain = chain
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport for responses."""
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        """Respond to every complete request, after the latency."""
        self._buffer += data
        while (request := self._next_request()) is not None:
            latency_s = self._chain.latency_s
            if latency_s:
                # Half of the latency before the call, half of it after.
                asyncio.get_running_loop().call_later(latency_s / 2, self._answer, request)
            else:
                self._answer(request)

    def _answer(self, request: bytes) -> None:
        calls = json.loads(request)
        many = isinstance(calls, list)
        answers: Any = [self._chain.answer(call) for call in (calls if many else [calls])]
        body = json.dumps(answers if many else answers[0]).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        whole = head.encode() + b"\r\n\r\n" + body
        latency_s = self._chain.latency_s
        if latency_s:
            asyncio.get_running_loop().call_later(latency_s / 2, self._transport.write, whole)
        else:
            self._transport.write(whole)

    def _next_request(self) -> bytes | None:
        """Return the next complete request body, or None."""
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return None
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(rest) < length:
            return None
        self._buffer = rest[length:]
        return rest[:length]


async def _serve(port: int, chain: StubChain) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: StubProtocol(chain), "127.0.0.1", port)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--latency-ms", type=float, default=0)
    parser.add_argument("--block-ms", type=int, default=BLOCK_MS, help="0 mines at once")
    chosen = parser.parse_args()
    chain = StubChain(latency_ms=chosen.latency_ms, block_ms=chosen.block_ms)
    uvloop.run(_serve(chosen.port, chain))


if __name__ == "__main__":
    main()
