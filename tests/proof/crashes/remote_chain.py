"""The embedded chain in a process of its own, used over JSON-RPC like any other."""

import contextlib
import http.client
import itertools
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from eth_utils.crypto import keccak

from gateway_demo.chain import PlayChain
from gateway_demo.token import USDC_ADDRESSES
from gateway_demo.tour.processes import Child

_RANGE = 2_000  # blocks a query
_SETTLES = (
    "0x"
    + keccak(
        text="transferWithAuthorization"
        "(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)"
    )[:4].hex()
)
_NONCE = slice(10 + 5 * 64, 10 + 6 * 64)  # the sixth word of that call


class RemoteChain:
    """The test methods of a `PlayChain` for one in another process. Thread-safe."""

    chain_id = 8453
    usdc = USDC_ADDRESSES[chain_id]
    sign_transaction = PlayChain.sign_transaction
    send_transaction = PlayChain.send_transaction
    send_raw = PlayChain.send_raw
    transfer_usdc = PlayChain.transfer_usdc

    def __init__(self, rpc_url: str) -> None:
        self.rpc_url = rpc_url
        self.rpc = self  # `PlayChain` asks its `rpc` for results
        self._mine = threading.local()
        self._ids = itertools.count(1)
        self._open: list[http.client.HTTPConnection] = []

    def result(self, method: str, *params):
        """Call a method; raises `RuntimeError` if the node refuses it."""
        call = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        connection = self._connection()
        connection.request("POST", "/", json.dumps(call), {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def _connection(self) -> http.client.HTTPConnection:
        if not hasattr(self._mine, "connection"):
            where = urlsplit(self.rpc_url)
            self._mine.connection = http.client.HTTPConnection(where.hostname, where.port)
            self._open.append(self._mine.connection)
        return self._mine.connection

    def close(self) -> None:
        for connection in self._open:
            connection.close()

    def fund(self, address: str, *, eth_wei: int, usdc_units: int) -> None:
        self.result("play_fund", address, hex(eth_wei), hex(usdc_units))

    def height(self) -> int:
        return int(self.result("eth_blockNumber"), 16)

    def timestamp(self) -> int:
        return int(self.result("eth_getBlockByNumber", "latest", False)["timestamp"], 16)

    def waiting_settlements(self) -> list[tuple[str, str]]:
        """Return (hash, nonce) of the settlements that the next block would contain."""
        block = self.result("eth_getBlockByNumber", "pending", True)
        return [
            (one["hash"], "0x" + one["input"][_NONCE])
            for one in block["transactions"]
            if one["input"].startswith(_SETTLES)
        ]

    def logs(self, first: int, last: int) -> list[dict]:
        """Return the token's logs of a range of blocks."""
        return [
            log
            for start in range(first, last + 1, _RANGE)
            for log in self.result(
                "eth_getLogs",
                {
                    "address": self.usdc,
                    "fromBlock": hex(start),
                    "toBlock": hex(min(start + _RANGE - 1, last)),
                },
            )
        ]


@contextlib.contextmanager
def chain_process(folder: Path) -> Iterator[RemoteChain]:
    """Run a chain within the block. It always ends with us."""
    child = Child.start("chain", ["--port", "0"], folder)
    try:
        child.wait_until(lambda: child.log.read_text().endswith("}\n"))
        with contextlib.closing(RemoteChain(json.loads(child.log.read_text())["rpc_url"])) as chain:
            yield chain
    finally:
        child.stop()
