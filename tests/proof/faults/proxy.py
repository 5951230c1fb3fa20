"""A JSON-RPC proxy in front of the embedded chain that breaks chosen calls in chosen ways."""

import itertools
import json
import socket
import struct
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from gateway.domain.eip3009 import (
    AUTHORIZATION_STATE,
    BALANCE_OF,
    DOMAIN_SEPARATOR,
    IS_BLACKLISTED,
    PAUSED,
)
from gateway_demo.chain import PlayChain, json_values

_HANG_S = 30.0  # longer than anybody waits
_SELECTORS = {
    AUTHORIZATION_STATE: "authorizationState",
    BALANCE_OF: "balanceOf",
    IS_BLACKLISTED: "isBlacklisted",
    PAUSED: "paused",
    DOMAIN_SEPARATOR: "DOMAIN_SEPARATOR",
}
SHARED = "eth_call simulation, shared"
_SIMULATED = {False: "simulation, checked", True: "simulation, signed"}


EVERY = "every call"


class HangUp(Exception):
    """The connection is reset without a response."""


def call_name(request: dict) -> str:
    """Return the name of a request in docs/faults.md; `eth_call` by its function."""
    if request["method"] != "eth_call":
        return request["method"]
    call = request["params"][0]
    if "to" not in call:
        return SHARED
    name = _SELECTORS.get(bytes.fromhex(call["data"][2:10]))
    return f"eth_call {name or _SIMULATED['from' in call]}"


class FaultProxy:
    """Forwards to the chain; `faults` replaces calls by name."""

    def __init__(self, chain: PlayChain) -> None:
        self.chain = chain
        self.faults: dict[str, Callable] = {}
        self.seen: list[str] = []
        self.headers: dict[str, str] = {}  # of the next answer
        self.healed = threading.Event()
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.proxy = self
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.heal()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
        self._http.close_connections()

    def break_call(self, call: str, fault: Callable) -> None:
        self.healed = threading.Event()
        self.faults[call] = fault

    def heal(self) -> None:
        """Forward everything from now on; hanging requests are closed."""
        self.faults.clear()
        self.healed.set()

    def answer(self, body: bytes) -> tuple[int, bytes]:
        request = json.loads(body)
        name = call_name(request)
        self.seen += [name, *([EVERY] if EVERY in self.faults else [])]
        fault = self.faults.get(name) or self.faults.get(EVERY)
        if fault is None:
            return 200, self.chain.rpc.answer(body)
        return fault(self, request, body)

    def hang(self) -> None:
        self.healed.wait(_HANG_S)
        raise HangUp


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    proxy: FaultProxy

    def __init__(self, *args) -> None:
        super().__init__(*args)
        self._open: set[socket.socket] = set()

    def process_request(self, request, client_address) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        for connection in list(self._open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def handle_error(self, request, client_address) -> None:
        """Ignore clients that disconnect."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            status, answer = self.server.proxy.answer(body)
        except HangUp:
            self._reset()
            return
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        for name, value in self.server.proxy.headers.items():
            self.send_header(name, value)
        self.server.proxy.headers = {}
        self.end_headers()
        self.wfile.write(answer)
        self.wfile.flush()

    def _reset(self) -> None:
        """Close with a RST, like a dead load balancer."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def log_message(self, *args) -> None:
        """Keep quiet."""


# -- the columns of docs/faults.md


def says(result) -> Callable:
    """Return a fault that responds with a result."""
    return lambda proxy, request, body: (200, _json(request, result=result))


def null(proxy, request, body):
    return 200, _json(request, result=None)


def time_out(proxy, request, body):
    proxy.hang()


def reset(proxy, request, body):
    raise HangUp


def too_many(proxy, request, body):
    return 429, _json(request, error={"code": -32005, "message": "rate limit exceeded"})


def unavailable(proxy, request, body):
    return 503, b"Service Unavailable"


def error(proxy, request, body):
    return 200, _json(request, error={"code": -32000, "message": "internal error"})


def limits_logs(most: int, words: str, *, status: int = 200, code: int = -32602) -> Callable:
    """Return a fault that limits log queries to `most` blocks."""

    def answer(proxy, request, body):
        query = request["params"][0]
        first, last = (int(query[name], 16) for name in ("fromBlock", "toBlock"))
        if last - first < most:
            return 200, proxy.chain.rpc.answer(body)
        works = f"[{hex(first)}, {hex(first + most - 1)}]"
        message = words.format(most=most, works=works, asked=last - first + 1)
        return status, _json(request, error={"code": code, "message": message})

    return answer


def garbage(proxy, request, body):
    return 200, b"<html>502 Bad Gateway</html>"


def answer_lost(proxy, request, body):
    """Executes the request, then fails."""
    proxy.chain.rpc.answer(body)
    return 500, b"upstream failed"


def never_lands(proxy, request, body):
    """Accepts a transaction, returns its hash and loses it."""
    from eth_utils.crypto import keccak

    raw = bytes.fromhex(request["params"][0][2:])
    return 200, _json(request, result="0x" + keccak(raw).hex())


_FIELDS = {
    "eth_getTransactionReceipt": "status",
    "eth_getBlockByNumber": "timestamp",
    "eth_getBlockByHash": "timestamp",
    "eth_getLogs": "transactionHash",
}


def missing_field(proxy, request, body):
    """Leaves out the requested field."""
    answer = json.loads(proxy.chain.rpc.answer(body))
    entries = answer["result"] if isinstance(answer["result"], list) else [answer["result"]]
    for entry in entries:
        if entry is not None:
            del entry[_FIELDS[request["method"]]]
    return 200, json.dumps(answer).encode()


ZERO_HASH = "0x" + "0" * 64


def preconfirmed(block_hash: str, *, reverted: bool = False) -> Callable:
    """Return the fault of a node that returns receipts before blocks, of transactions in none.

    It has a receipt of each transaction that is pending, or that others' block contains already.
    """

    def fault(proxy, request, body):
        node = proxy.chain.node
        with node.lock:
            key = bytes.fromhex(request["params"][0][2:])
            found = node.find_mined(key)
            if found is None:
                block = node.preview()
                waiting = [done for done in block.executed if done.transaction.hash == key]
                found = (block, waiting[0]) if waiting else None
            number = hex(node.head.number + 1)
        if found is None:
            return null(proxy, request, body)
        receipt = json_values.receipt(*found)
        for each in (receipt, *receipt["logs"]):
            each.update(blockHash=block_hash, blockNumber=number)
        if reverted:
            receipt.update(status="0x0", logs=[])
        return 200, _json(request, result=receipt)

    return fault


def wrong_chain(proxy, request, body):
    return 200, _json(request, result="0x1")


def half_refused(dice) -> Callable:
    """Return a fault of an endpoint that refuses half of all calls, none six times in a row."""
    streaks: dict[str, int] = {}

    def fault(proxy, request, body):
        key = json.dumps([request["method"], request["params"]])
        if streaks.get(key, 0) < 5 and dice.random() < 0.5:
            streaks[key] = streaks.get(key, 0) + 1
            return too_many(proxy, request, body)
        streaks[key] = 0
        return 200, proxy.chain.rpc.answer(body)

    return fault


def two_nodes(behind: int) -> Callable:
    """Return the fault of an address with two nodes that alternate.

    The second one lacks the newest blocks.
    """
    turns = itertools.count()

    def fault(proxy, request, body):
        if next(turns) % 2 == 0:
            return 200, proxy.chain.rpc.answer(body)
        head = max(proxy.chain.block.number - behind, 0)
        if any(number > head for number in _numbers_asked(proxy, request)):
            if request["method"].startswith("eth_getBlock"):
                return null(proxy, request, body)
            return 200, _json(request, error={"code": -32000, "message": "header not found"})
        asked = json.dumps(request).replace('"latest"', f'"{hex(head)}"')
        answer = json.loads(proxy.chain.rpc.answer(asked.encode()))
        result = answer.get("result")
        number = result.get("blockNumber") if isinstance(result, dict) else None
        if number is not None and int(number, 16) > head:
            return null(proxy, request, body)
        return 200, json.dumps(answer).encode()

    return fault


def _numbers_asked(proxy, request) -> list[int]:
    """Return the numbers of the blocks that a call names by number or by hash."""
    values = [
        each.get("blockHash") if isinstance(each, dict) else each for each in request["params"]
    ]
    if request["method"] == "eth_getBlockByNumber":
        return [int(values[0], 16)] if values[0].startswith("0x") else []
    hashes = values if request["method"] == "eth_getBlockByHash" else values[1:]
    return [_number_of(proxy, each) for each in hashes if isinstance(each, str) and len(each) == 66]


def _number_of(proxy, block_hash: str) -> int:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "eth_getBlockByHash"}
    asked["params"] = [block_hash, False]
    block = json.loads(proxy.chain.rpc.answer(json.dumps(asked).encode()))["result"]
    return int(block["number"], 16)


FAULTS = {
    "null": null,
    "time-out": time_out,
    "reset": reset,
    "429": too_many,
    "503": unavailable,
    "error": error,
    "garbage": garbage,
    "missing field": missing_field,
    "zero hash": preconfirmed(ZERO_HASH),
    "unknown hash": preconfirmed("0x" + "f1" * 32),
    "limited": limits_logs(10, "ranges over {most} blocks are not supported on your plan"),
    "wrong chain": wrong_chain,
    "answer lost": answer_lost,
    "never lands": never_lands,
}


def _json(request, **answer) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}).encode()
