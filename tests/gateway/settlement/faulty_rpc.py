"""A JSON-RPC endpoint in front of the chain, and its faults."""

import contextlib
import json
import threading

from gateway.domain.eip3009 import AUTHORIZATION_STATE
from gateway_demo.chain.server import RpcServer
from tests.patience import PATIENCE_S


class FaultyRpc:
    """A JSON-RPC endpoint in front of the chain; `faults` has the fault of each method."""

    def __init__(self, chain) -> None:
        self.chain = chain
        self.faults = {}
        self.seen = []
        self.healed = threading.Event()
        self._server = RpcServer(self._answer, host="127.0.0.1", port=0)
        self.url = self._server.url

    def __enter__(self):
        self._server.start()
        return self

    def __exit__(self, *_):
        self.heal()
        self._server.stop()

    def heal(self) -> None:
        self.faults.clear()
        self.healed.set()

    def _answer(self, body: bytes) -> bytes:
        request = json.loads(body)
        self.seen.append(request["method"])
        fault = self.faults.get(request["method"]) or self.faults.get("*")
        if fault is None:
            return self.chain.rpc.answer(body)
        return fault(self, request, body)


@contextlib.contextmanager
def gated(chain):
    """Yield an endpoint that holds the first broadcast until it is healed."""
    with FaultyRpc(chain) as endpoint:
        endpoint.faults["eth_sendRawTransaction"] = delayed
        yield endpoint


def silent(rpc, request, body):
    raise ConnectionError("hangs up")


def hangs(rpc, request, body):
    rpc.healed.wait(20)
    raise ConnectionError("hangs up")


def delayed(rpc, request, body):
    """Passes the request on once the endpoint is healed."""
    rpc.healed.wait(PATIENCE_S)
    return rpc.chain.rpc.answer(body)


def answer_lost(rpc, request, body):
    rpc.chain.rpc.answer(body)
    raise ConnectionError("hangs up")


def nonsense(rpc, request, body):
    return b"<html>502 Bad Gateway</html>"


def forgetful(rpc, request, body):
    """Accepts a transaction and loses it."""
    from eth_utils.crypto import keccak

    raw = bytes.fromhex(request["params"][0][2:])
    return _json(request, result="0x" + keccak(raw).hex())


def refuses(message):
    def fault(rpc, request, body):
        return _json(request, error={"code": -32000, "message": message})

    return fault


def says(result):
    return lambda rpc, request, body: _json(request, result=result)


def knows_nothing_of_the_nonce(rpc, request, body):
    """A load balancer that answers `eth_call` of authorizationState without data."""
    data = request["params"][0]["data"]
    if data.startswith("0x" + AUTHORIZATION_STATE.hex()):
        return _json(request, result="0x")
    return rpc.chain.rpc.answer(body)


def _json(request, **answer):
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}).encode()
