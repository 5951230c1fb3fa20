"""Handles JSON-RPC 2.0 requests and batches, one request at a time."""

from __future__ import annotations

import inspect
import json
import logging
from typing import Any, Final

from gateway_demo.chain.cheats import Cheats
from gateway_demo.chain.faults import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    RpcFault,
)
from gateway_demo.chain.methods import Methods
from gateway_demo.chain.node import Node

# As in geth.
MAX_BATCH: Final = 1000  # requests
_log: Final = logging.getLogger(__name__)


class Rpc:
    """Turns the body of a request into the body of its response."""

    def __init__(self, node: Node, token: str) -> None:
        self._node = node
        self._methods = {**Methods(node).table(), **Cheats(node, token).table()}
        self._signatures = {name: inspect.signature(run) for name, run in self._methods.items()}

    def answer(self, body: bytes) -> bytes:
        """Handle a request or a batch; the response is empty for notifications."""
        try:
            request = json.loads(body)
        except (ValueError, RecursionError):
            return _dump(_make_error(None, RpcFault("parse error", code=PARSE_ERROR)))
        if not isinstance(request, list):
            return _dump(self._answer_one(request))
        if not request or len(request) > MAX_BATCH:
            why = "batch too large" if request else "empty batch"
            return _dump(_make_error(None, RpcFault(why, code=INVALID_REQUEST)))
        answers = [self._answer_one(item) for item in request]
        return _dump([answer for answer in answers if answer is not None] or None)

    def result(self, method: str, *params: Any) -> Any:
        """Call a method in this process and return its result.

        Raises `RpcFault` if the response would be an error.
        """
        run = self._methods.get(method)
        if run is None:
            why = f"the method {method} does not exist/is not available"
            raise RpcFault(why, code=METHOD_NOT_FOUND)
        try:
            self._signatures[method].bind(*params)
        except TypeError as error:
            raise RpcFault(f"invalid params: {error}", code=INVALID_PARAMS) from None
        with self._node.lock:
            self._node.keep_up()
            return run(*params)

    def _answer_one(self, request: Any) -> dict[str, Any] | None:
        if not isinstance(request, dict) or not isinstance(request.get("method"), str):
            return _make_error(None, RpcFault("invalid request", code=INVALID_REQUEST))
        try:
            result = self._find_result(request["method"], request.get("params") or [])
        except RpcFault as fault:
            answer = _make_error(request.get("id"), fault)
        else:
            answer = {"jsonrpc": "2.0", "id": request.get("id"), "result": result}
        return answer if "id" in request else None

    def _find_result(self, method: str, params: Any) -> Any:
        if not isinstance(params, list):
            raise RpcFault("non-array args", code=INVALID_PARAMS)
        try:
            return self.result(method, *params)
        except RpcFault:
            raise
        except Exception as error:
            # An unexpected error must not stop the chain.
            _log.exception("rpc_failed")
            why = f"internal error: {type(error).__name__}"
            raise RpcFault(why, code=INTERNAL_ERROR) from error


def _make_error(request_id: Any, fault: RpcFault) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": fault.to_json()}


def _dump(answer: Any) -> bytes:
    return b"" if answer is None else json.dumps(answer, separators=(",", ":")).encode()
